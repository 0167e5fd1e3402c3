package plan

import (
	"slices"

	"headgate/internal/config"
	"headgate/internal/feature/cache"
	"headgate/internal/metrics"
)

// cache puts a cache around the source of a route.
func (c *compiler) cache(b *body, f *config.Features) error {
	if f.Cache == nil {
		return nil
	}
	b.cache = cache.New(f.Cache, c.store(b, f.Cache), b.source)
	if b.split != nil {
		b.cache.Partition(b.split.Partition)
	}
	b.source = b.cache
	// it sees a response as the client gets it
	c.shared.lists.add(b.cache.Filter())
	return nil
}

// store returns the memory of a route's cache: its own, or its proxy's.
func (c *compiler) store(b *body, settings *cache.Config) cache.Store {
	owner, own := stored{proxy: b.proxy.Name}, settings == b.settings.Cache
	if own {
		owner.route = b.label
	}
	for _, known := range c.compiling.stores {
		if known.route == owner.route {
			return known.store
		}
	}
	owner.store = cache.Open(settings, c.envFor(b, own))
	c.compiling.stores = append(c.compiling.stores, owner)
	if c.house.Metrics != nil {
		c.count(c.house.Metrics.Cache(owner.proxy, owner.route, owner.memory))
	}
	return owner.store
}

// stored is the memory of a cache, and whose it is: a proxy's if route is "".
type stored struct {
	proxy, route string
	store        cache.Store
}

func (s stored) memory() metrics.Memory {
	var m metrics.Memory
	m.Bytes, m.Limit, m.Entries, m.Evicted = s.store.Memory()
	return m
}

// Purge takes out of caches what q says, which was checked, and returns how many
// responses there were, and of how many caches.
func (p *Plan) Purge(q cache.Purge) (purged, caches int) {
	for _, proxy := range p.proxies {
		if q.Proxy != "" && q.Proxy != proxy.settings.Name {
			continue
		}
		for _, s := range proxy.stores {
			purged += s.store.Purge(q)
			caches++
		}
	}
	return purged, caches
}

// DropCaches removes everything from all caches.
func (p *Plan) DropCaches() { p.Purge(cache.Purge{All: true}) }

// CacheState is what a cache holds.
type CacheState struct {
	// Proxy is the proxy of the cache.
	Proxy string `json:"proxy" required:"true"`
	// Route is the route, if the cache belongs to a single route.
	Route string `json:"route,omitempty"`
	// Bytes is the memory that the cache uses.
	Bytes int64 `json:"bytes" required:"true"`
	// Limit is its memory_limit.
	Limit int64 `json:"limit_bytes" required:"true"`
	// Entries is the number of stored responses.
	Entries int64 `json:"entries" required:"true"`
	// Evicted counts the responses that were removed because the memory was full.
	Evicted int64 `json:"evicted" required:"true"`
}

// Caches returns the states of the caches, by proxy. Requests continue meanwhile.
func (p *Plan) Caches() []CacheState {
	all := []CacheState{}
	for _, proxy := range p.proxies {
		for _, s := range proxy.stores {
			m := s.memory()
			all = append(all, CacheState{s.proxy, s.route, m.Bytes, m.Limit, m.Entries, int64(m.Evicted)})
		}
	}
	return all
}

// CachedRoute names a route with a cache.
type CachedRoute struct {
	// Proxy and Route are as metrics and logs name them.
	Proxy, Route string
}

// CachedRoutes returns the routes with a cache, by proxy.
func (p *Plan) CachedRoutes() []CachedRoute {
	var all []CachedRoute
	for _, proxy := range p.proxies {
		for _, b := range proxy.bodies {
			if b.cache != nil {
				all = append(all, CachedRoute{proxy.settings.Name, b.label})
			}
		}
	}
	return all
}

// CacheEntries returns the first limit stored responses of all caches in an order, or of those
// of one proxy. See cache.Store.Entries.
func (p *Plan) CacheEntries(name string, by cache.Order, limit int) (out []cache.Stored, found bool) {
	out = []cache.Stored{}
	for _, proxy := range p.proxies {
		if name != "" && name != proxy.settings.Name {
			continue
		}
		found = found || len(proxy.stores) > 0
		for _, s := range proxy.stores {
			part := s.store.Entries(by, limit)
			for i := range part {
				part[i].Proxy, part[i].Route = s.proxy, s.route
			}
			out = append(out, part...)
			slices.SortStableFunc(out, func(a, b cache.Stored) int { return by.Compare(&a, &b) })
			out = out[:min(len(out), limit)]
		}
	}
	return out, found
}
