package compression

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config compresses the bodies of responses for clients that support it.
type Config struct {
	// Enabled is whether responses are compressed. `enabled: false` on a route overrides
	// the proxy's setting.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Algorithms are the encodings in order of preference: `zstd`, `br` and `gzip`. The
	// client's preference comes first; among encodings that it accepts equally, the first
	// one here is used. Absent means zstd, br, gzip.
	Algorithms []string `json:"algorithms,omitempty" label:"true" max:"3" example:"[zstd, br, gzip]"`
	// MinSize is the minimum size of a body to compress. A body of unknown length is held
	// back until this much has arrived, or until the server pauses.
	MinSize unit.Size `json:"min_size" label:"true" default:"1KiB" max:"1MiB"`
	// Types are the media types to compress: `text/html`, `text/*`, or `*+json` for a
	// suffix. Absent means text, JSON, JavaScript, XML, SVG, wasm, uncompressed font
	// formats, and the like. Event streams and gRPC are never compressed.
	Types []string `json:"types,omitempty" label:"true" max:"200" example:"[text/*, application/json]"`
}

// Off reports whether nothing is compressed.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	for i, name := range c.Algorithms {
		place := at.Field("algorithms").Index(i)
		switch {
		case !slices.Contains(usual, name):
			remedy := "write zstd, br or gzip"
			if near := schema.Nearest(name, usual); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			place.Problemf(remedy, "unknown algorithm %q", name)
		case slices.Contains(c.Algorithms[:i], name):
			place.Problemf("remove one of them", "duplicate entry %s", name)
		}
	}
	for i, t := range c.Types {
		if !validType(t) {
			at.Field("types").Index(i).Problemf("write one like text/html, text/* or *+json", "%q is not a media type", t)
		}
	}
}

// validType reports whether an entry of types can match anything.
func validType(t string) bool {
	if suffix, ok := strings.CutPrefix(t, "*+"); ok {
		return http1.ValidName(suffix)
	}
	kind, sub, ok := strings.Cut(t, "/")
	return ok && http1.ValidName(kind) && http1.ValidName(sub) && !strings.Contains(kind, "*") && (sub == "*" || !strings.Contains(sub, "*"))
}
