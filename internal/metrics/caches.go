package metrics

import "github.com/prometheus/client_golang/prometheus"

// Memory is what a cache holds at a moment.
type Memory struct {
	// Bytes is the memory that is held, Limit the most that may be.
	Bytes, Limit int64
	// Entries is the number of stored responses.
	Entries int64
	// Evicted counts those that were given up because memory was full.
	Evicted uint64
}

// cacheKey names a cache: a proxy's, with route "", or that of a route.
type cacheKey struct{ proxy, route string }

// Cache shows what a cache holds.
type Cache struct {
	owner  *Registry
	key    cacheKey
	labels []string
	users  int           // guarded by owner.mu
	memory func() Memory // guarded by owner.mu
}

// Cache returns the handle of a cache, the proxy's own if route is "". memory is
// asked when the page is read. Each call wants a Retire of its own; equal caches
// share one handle.
func (r *Registry) Cache(proxy, route string, memory func() Memory) *Cache {
	key := cacheKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.caches == nil {
		r.mu.caches = map[cacheKey]*Cache{}
	}
	h := r.mu.caches[key]
	if h == nil {
		h = &Cache{owner: r, key: key, labels: labels(proxy, route)}
		r.mu.caches[key] = h
	}
	h.users++
	h.memory = memory
	return h
}

// Retire removes the cache from the page when as many have retired it as asked
// for it.
func (h *Cache) Retire() {
	r := h.owner
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(r.mu.caches, h.key)
	}
}

// collectCaches shows what caches hold.
func (r *Registry) collectCaches(out chan<- prometheus.Metric, f *families) {
	type shown struct {
		labels []string
		memory func() Memory
	}
	var all []shown
	r.mu.Lock()
	for _, h := range r.mu.caches {
		all = append(all, shown{h.labels, h.memory})
	}
	r.mu.Unlock()
	for _, h := range all {
		m := h.memory()
		out <- prometheus.MustNewConstMetric(f.cacheBytes.desc(), prometheus.GaugeValue, float64(m.Bytes), h.labels...)
		out <- prometheus.MustNewConstMetric(f.cacheLimit.desc(), prometheus.GaugeValue, float64(m.Limit), h.labels...)
		out <- prometheus.MustNewConstMetric(f.cacheEntries.desc(), prometheus.GaugeValue, float64(m.Entries), h.labels...)
		out <- prometheus.MustNewConstMetric(f.cacheEvicted.desc(), prometheus.CounterValue, float64(m.Evicted), h.labels...)
	}
}
