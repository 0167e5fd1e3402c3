package compression

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/proto/http1"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config compresses the bodies of responses for clients that can read that.
type Config struct {
	// Enabled is whether responses are compressed. `enabled: false` on a route
	// switches off what the proxy would hand down.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Algorithms are those that are used, the preferred one first: `zstd`, `br`
	// and `gzip`. Which one a client gets is what it likes best itself, and of
	// those it likes equally the first here. Absent means zstd, br, gzip.
	Algorithms []string `json:"algorithms,omitempty" label:"true" max:"3" example:"[zstd, br, gzip]"`
	// MinSize is the size from which on bodies are compressed. Shorter ones would
	// gain nothing. A body whose length is not known beforehand is held back until
	// so much of it is there, or until the server pauses.
	MinSize unit.Size `json:"min_size" label:"true" default:"1KiB" max:"1MiB"`
	// Types are the media types that are compressed: `text/html`, `text/*`, or
	// `*+json` for a suffix. Absent means text, JSON, JavaScript, XML, SVG, wasm,
	// fonts that are not compressed in themselves, and the like. Event streams and
	// gRPC never are.
	Types []string `json:"types,omitempty" label:"true" max:"200" example:"[text/*, application/json]"`
}

// Off reports whether nothing is compressed.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings, which stand at at.
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
