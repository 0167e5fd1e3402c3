package plan

import (
	"headgate/internal/config"
	"headgate/internal/feature/cache"
	"headgate/internal/feature/compression"
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
	b.cache = cache.New(f.Cache, cache.Open(scopeOf(b, f.Cache == b.settings.Cache), c.env), b.source)
	b.source = b.cache
	// What it hears of a response is how the client gets it.
	b.add(b.cache.Filter())
}
