package plan

import (
	"headgate/internal/config"
	"headgate/internal/feature/compression"
)

// around puts what keeps or changes whole responses around the source of a route:
// compression next to it, so that what stands in front of that gets compressed
// bodies.
func (c *compiler) around(b *body, f *config.Features) {
	if f.Compression != nil {
		b.source = compression.Wrap(f.Compression, b.source, c.env)
	}
}
