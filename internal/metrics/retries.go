package metrics

import "sync/atomic"

// Retries counts the retries of a route. They are rare, so that one number for
// all processors does.
type Retries struct {
	shared[routeKey, Retries]
	// sent are the retries that were made, refused those that the budget
	// refused.
	sent, refused atomic.Uint64
}

// Count counts a retry: true when it was made, false when the budget refused it.
func (h *Retries) Count(sent bool) {
	if sent {
		h.sent.Add(1)
	} else {
		h.refused.Add(1)
	}
}

// Retries returns the handle for the retries of a route. Each call wants a
// Retire of its own; equal routes share one handle.
func (r *Registry) Retries(proxy, route string) *Retries {
	key := routeKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.retries.shareLocked(key)
}

// mirrorResults are the words for what becomes of copies.
var mirrorResults = [...]string{"sent", "failed", "dropped", "too_long"}

// Mirror counts the copies of a route's requests.
type Mirror struct {
	shared[routeKey, Mirror]
	counts [len(mirrorResults)]atomic.Uint64
}

// Count counts a copy by the place of its word: sent, failed, dropped, too_long.
func (h *Mirror) Count(result uint8) { h.counts[result].Add(1) }

// Mirror returns the handle for the copies of a route's requests. Each call wants
// a Retire of its own; equal routes share one handle.
func (r *Registry) Mirror(proxy, route string) *Mirror {
	key := routeKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.mirrors.shareLocked(key)
}
