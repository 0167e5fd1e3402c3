package plan

import (
	"slices"

	"headgate/internal/config"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/compression"
	"headgate/internal/metrics"
)

// around puts what keeps or changes whole responses around the source of a route:
// compression next to it, then the cache, which keeps what is compressed already.
func (c *compiler) around(b *body, f *config.Features) {
	if f.Compression != nil {
		b.source = compression.Wrap(f.Compression, b.source, c.env)
	}
	if f.Cache == nil || b.servers == nil {
		return
	}
	b.cache = cache.New(f.Cache, c.store(b, f.Cache), b.source)
	b.source = b.cache
	// What it hears of a response is how the client gets it.
	b.add(b.cache.Filter())
}

// store returns the memory of a route's cache: its own, or its proxy's.
func (c *compiler) store(b *body, settings *cache.Config) cache.Store {
	owner, own := stored{proxy: b.proxy.Name}, settings == b.settings.Cache
	if own {
		owner.route = b.path()
	}
	// The stores of a proxy stand together, the last ones at the end.
	for _, known := range slices.Backward(c.plan.stores) {
		if known.proxy != owner.proxy {
			break
		}
		if known.route == owner.route {
			return known.store
		}
	}
	owner.store = cache.Open(settings, scopeOf(b, own), c.env)
	c.plan.stores = append(c.plan.stores, owner)
	if c.house.Metrics != nil {
		c.plan.counters = append(c.plan.counters, c.house.Metrics.Cache(owner.proxy, owner.route, owner.memory))
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
	for _, s := range p.stores {
		if q.Proxy == "" || q.Proxy == s.proxy {
			purged += s.store.Purge(q)
			caches++
		}
	}
	return purged, caches
}
