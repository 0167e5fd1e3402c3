package cache

import (
	"strings"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config stores responses in memory and reuses them, as a shared cache of RFC 9111: the
// servers determine what is stored and for how long (Cache-Control). The routes of a proxy
// share one cache; a route with its own settings has its own.
type Config struct {
	// Enabled is whether responses are stored. `enabled: false` on a route overrides the
	// proxy's setting.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// MemoryLimit is the maximum memory of the cache: bodies, heads and the index. When it
	// is full, entries that are requested least are removed.
	MemoryLimit unit.Size `json:"memory_limit" default:"64MiB" min:"1MiB" max:"1TiB"`
	// MaxEntry is the largest response body that is stored. Larger ones are not stored.
	MaxEntry unit.Size `json:"max_entry" label:"true" default:"1MiB" min:"1KiB" max:"16GiB"`
	// DefaultTTL is how long a response without an explicit lifetime is fresh. With 0 it is
	// not stored.
	DefaultTTL unit.Duration `json:"default_ttl" label:"true" default:"0s" max:"365d"`
	// Heuristic is the lifetime of a response without an explicit one, as a part of the
	// time since its Last-Modified, up to a day; 10% is usual. It takes precedence over
	// default_ttl, is at least a second, and does not apply to requests with a query. 0
	// disables it.
	Heuristic unit.Percent `json:"heuristic" default:"0" min:"0" max:"100%" example:"10%"`
	// StaleWhileRevalidate is how long a stale response is still served while it is fetched
	// again in the background. The response can specify its own time. A response that is
	// expired when it arrives (max-age=0, Expires: 0) is never served without validation.
	StaleWhileRevalidate unit.Duration `json:"stale_while_revalidate" label:"true" default:"0s" max:"365d"`
	// StaleIfError is how long a stale response is still served when the servers fail. The
	// response can specify its own time. It does not apply to a response that is expired
	// when it arrives.
	StaleIfError unit.Duration `json:"stale_if_error" label:"true" default:"0s" max:"365d"`
	// Languages are the languages of the servers' responses. Accept-Language is replaced by
	// the best match, for the servers, too, or by the first language if none matches: a
	// response that varies by it is then stored once for each language, and not for each
	// value that browsers send. Absent leaves the header unchanged.
	Languages []string `json:"languages,omitempty" label:"true" max:"50" example:"en"`
	// IgnoreQuery names query parameters that have no effect on a response, such as
	// campaign identifiers: requests that differ only in them share one stored response,
	// and servers do not get them when a response is fetched to be stored. A name can end
	// in `*`; `*` alone is the whole query.
	IgnoreQuery []string `json:"ignore_query,omitempty" label:"true" max:"100" example:"utm_*"`
}

// Off reports whether the cache is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.MaxEntry > c.MemoryLimit && c.MemoryLimit >= 1<<20 { // a smaller limit is a problem of its own
		at.Field("max_entry").Problemf("write max_entry: "+c.MemoryLimit.String()+", or a larger memory_limit",
			"an entry of %v does not fit into a cache of %v", c.MaxEntry, c.MemoryLimit)
	}
	for i, name := range c.Languages {
		if !validLanguage(name) {
			at.Field("languages").Index(i).Problem("not a language tag", "write one like en or pt-BR")
		}
	}
	for i, name := range c.IgnoreQuery {
		if what := checkParameter(name); what != "" {
			at.Field("ignore_query").Index(i).Problem(what, `write the name of a parameter, such as utm_source, utm_* or *`)
		}
	}
}

// validLanguage reports whether a name has the form of a language tag (RFC 5646).
func validLanguage(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || len(part) > 8 {
			return false
		}
		for i := range len(part) {
			if c := part[i] | 0x20; (c < 'a' || c > 'z') && (part[i] < '0' || part[i] > '9') {
				return false
			}
		}
	}
	return len(name) <= 35
}

// checkParameter reports problems of the name of a query parameter.
func checkParameter(name string) string {
	switch star := strings.IndexByte(name, '*'); {
	case name == "":
		return "an empty name"
	case star >= 0 && star < len(name)-1:
		return "* is allowed at the end of a name only"
	case strings.ContainsAny(name, "?&=# \t"):
		return "a name without ?, &, = and blanks is meant"
	}
	return ""
}
