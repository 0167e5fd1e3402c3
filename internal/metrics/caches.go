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

// Cache shows what a cache holds.
type Cache struct {
	shared[routeKey, Cache]
	memory func() Memory // guarded by owner.mu
}

// Cache returns the handle of a cache, the proxy's own if route is "". memory is
// called when the page is read. Each call needs a Retire of its own; equal
// caches share one handle.
func (r *Registry) Cache(proxy, route string, memory func() Memory) *Cache {
	key := routeKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.caches.shareLocked(key)
	h.memory = memory
	return h
}

// collectCaches shows what caches hold.
func (r *Registry) collectCaches(out chan<- prometheus.Metric, f *families) {
	type shown struct {
		labels []string
		memory func() Memory
	}
	var all []shown
	r.mu.Lock()
	for h := range r.mu.caches.allLocked() {
		all = append(all, shown{h.labels(), h.memory})
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
