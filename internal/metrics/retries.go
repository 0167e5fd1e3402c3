package metrics

import "sync/atomic"

type retriesKey struct{ proxy, route string }

// Retries counts the retries of a route. They are rare, so that one number for
// all processors does.
type Retries struct {
	owner  *Registry
	key    retriesKey
	labels []string
	users  int // guarded by owner.mu
	// sent are the retries that were made, refused those that the budget
	// refused.
	sent, refused atomic.Uint64
}

// Told counts a retry: true when it was made, false when the budget refused it.
func (h *Retries) Told(sent bool) {
	if sent {
		h.sent.Add(1)
	} else {
		h.refused.Add(1)
	}
}

// Retire removes the numbers from the page when as many have retired them as
// asked for them.
func (h *Retries) Retire() {
	r := h.owner
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(r.mu.retries, h.key)
	}
}

// Retries returns the handle for the retries of a route. Each call wants a
// Retire of its own; equal routes share one handle.
func (r *Registry) Retries(proxy, route string) *Retries {
	key := retriesKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.retries[key]
	if h == nil {
		h = &Retries{owner: r, key: key, labels: labels(proxy, route)}
		r.mu.retries[key] = h
	}
	h.users++
	return h
}

// mirrorResults are the words for what becomes of copies.
var mirrorResults = [...]string{"sent", "failed", "dropped", "too_long"}

// Mirror counts the copies of a route's requests.
type Mirror struct {
	owner  *Registry
	key    retriesKey
	labels []string
	users  int // guarded by owner.mu
	counts [len(mirrorResults)]atomic.Uint64
}

// Told counts a copy by the place of its word: sent, failed, dropped, too_long.
func (h *Mirror) Told(result uint8) { h.counts[result].Add(1) }

// Retire removes the numbers from the page when as many have retired them as
// asked for them.
func (h *Mirror) Retire() {
	r := h.owner
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(r.mu.mirrors, h.key)
	}
}

// Mirror returns the handle for the copies of a route's requests. Each call wants
// a Retire of its own; equal routes share one handle.
func (r *Registry) Mirror(proxy, route string) *Mirror {
	key := retriesKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.mirrors[key]
	if h == nil {
		h = &Mirror{owner: r, key: key, labels: labels(proxy, route)}
		r.mu.mirrors[key] = h
	}
	h.users++
	return h
}
