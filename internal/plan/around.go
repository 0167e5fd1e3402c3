package plan

import (
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
