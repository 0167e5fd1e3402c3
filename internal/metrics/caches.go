package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate/internal/exchange"
)

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

// CacheUses are the requests of a route by what its cache made of them, since the start of
// the process.
type CacheUses [len(cached{})]uint64

// Of returns how many requests had a use.
func (u *CacheUses) Of(use exchange.CacheUse) uint64 { return u[use] }

// CacheUses returns the uses of the caches of all routes that had any, added over ports. The
// key has no port.
func (r *Registry) CacheUses() map[exchange.Place]*CacheUses {
	r.mu.Lock()
	routes := r.mu.routes.listLocked()
	r.mu.Unlock()
	all := map[exchange.Place]*CacheUses{}
	for _, h := range routes {
		uses, ok := h.cacheUses()
		if !ok {
			continue
		}
		key := exchange.Place{Proxy: h.key.Proxy, Route: h.key.Route}
		sum := all[key]
		if sum == nil {
			sum = new(CacheUses)
			all[key] = sum
		}
		for use, n := range uses {
			sum[use] += n
		}
	}
	return all
}

// cacheUses returns the uses of the cache of a route. ok is false if there were none.
func (h *Route) cacheUses() (uses CacheUses, ok bool) {
	h.cells.each(func(c *cell[routeNumbers]) {
		if c.n.rare == nil || c.n.rare.cached == nil {
			return
		}
		ok = true
		for use, n := range c.n.rare.cached {
			uses[use] += n
		}
	})
	return uses, ok
}

// cachePoint returns the requests that reached the cache of a route, and those that it
// answered without the server's body.
func (h *Route) cachePoint() (p Point) {
	uses, _ := h.cacheUses()
	for use, n := range uses {
		p.Requests += n
		if answeredByCache(exchange.CacheUse(use)) {
			p.CacheHits += n
		}
	}
	return p
}

// answeredByCache reports whether a use counts as a hit.
func answeredByCache(use exchange.CacheUse) bool {
	switch use {
	case exchange.CacheHit, exchange.CacheStale, exchange.CacheRevalidated, exchange.CacheCollapsed:
		return true
	}
	return false
}

// cacheSums are what the caches of routes counted within a step, added over ports.
type cacheSums map[Scope]*difference

// add adds what was counted for the cache of a route since the previous sample, if it has one.
func (sums cacheSums) add(h *Route) {
	now := h.cachePoint()
	if now == h.seen.cached {
		return
	}
	since := now.since(h.seen.cached)
	if h.seen.cached = now; h.key.Proxy == "" {
		return
	}
	scope := Scope{Kind: ScopeCache, Proxy: h.key.Proxy, Server: h.key.Route}
	if sums[scope] == nil {
		sums[scope] = &difference{}
	}
	sums[scope].Point.join(since)
}

// keepCaches keeps the sums of a step.
func (s *Series) keepCaches(step int64, sums cacheSums) {
	for scope, d := range sums {
		var t *track
		s.find(&t, scope)
		s.keep(t, step, d)
	}
}
