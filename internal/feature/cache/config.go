package cache

import (
	"strings"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config stores responses in memory and answers with them, as RFC 9111 says of a
// shared cache: what is stored, and for how long, is up to the servers
// (Cache-Control). A proxy has one cache for its routes; a route with settings of
// its own has its own.
type Config struct {
	// Enabled is whether responses are stored. `enabled: false` on a route
	// switches off what the proxy would hand down.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// MemoryLimit is how much memory the cache may hold: bodies, heads and the
	// index over them. When it is full, what is asked for least is given up.
	MemoryLimit unit.Size `json:"memory_limit" default:"64MiB" min:"1MiB" max:"1TiB"`
	// MaxEntry is the largest response body that is stored. Larger ones pass
	// through.
	MaxEntry unit.Size `json:"max_entry" label:"true" default:"1MiB" min:"1KiB" max:"16GiB"`
	// DefaultTTL is how long responses are fresh that say nothing of it
	// themselves. With 0 they are not stored.
	DefaultTTL unit.Duration `json:"default_ttl" label:"true" default:"0s" max:"365d"`
	// Heuristic is for what part of the time since their Last-Modified responses are
	// fresh that say nothing of it themselves, up to a day; 10% is usual. It comes before
	// default_ttl, is at least a second, and is not for requests with a query. 0 guesses
	// nothing.
	Heuristic unit.Percent `json:"heuristic" default:"0" min:"0" max:"100%" example:"10%"`
	// StaleWhileRevalidate is how long a response that is no longer fresh is
	// still served, while it is fetched anew in the background. A response that
	// says so itself has its own time. A response that arrives expired (max-age=0,
	// Expires: 0) is never served without validation.
	StaleWhileRevalidate unit.Duration `json:"stale_while_revalidate" label:"true" default:"0s" max:"365d"`
	// StaleIfError is how long a response that is no longer fresh is still served
	// when the servers fail. A response that says so itself has its own time. It does
	// not hold for a response that arrives expired.
	StaleIfError unit.Duration `json:"stale_if_error" label:"true" default:"0s" max:"365d"`
	// Languages are the languages that the servers answer in. Accept-Language is
	// replaced by the one that fits it best, for the servers too, and the first where
	// none does: a response that varies by it is then stored once for each language,
	// and not for each way in which browsers write what they like. Absent leaves
	// the field alone.
	Languages []string `json:"languages,omitempty" label:"true" max:"50" example:"en"`
	// IgnoreQuery names query parameters that make no difference to a response,
	// such as those that count campaigns: requests that differ in them only
	// share one stored response, and servers do not get them when a response is
	// fetched to be stored. A name may end in `*`; `*` alone is the whole query.
	IgnoreQuery []string `json:"ignore_query,omitempty" label:"true" max:"100" example:"utm_*"`
}

// Off reports whether the cache is switched off.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings, which stand at at.
func (c *Config) Check(at schema.Place) {
	if c.MaxEntry > c.MemoryLimit && c.MemoryLimit >= 1<<20 { // a smaller limit is a problem of its own
		at.Field("max_entry").Problemf("write max_entry: "+c.MemoryLimit.String()+", or a larger memory_limit",
			"an entry of %v does not fit into a cache of %v", c.MaxEntry, c.MemoryLimit)
	}
	for i, name := range c.Languages {
		if !validLanguage(name) {
			at.Field("languages").Index(i).Problem("this is no tag of a language", "write one like en or pt-BR")
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

// checkParameter tells what is wrong with the name of a query parameter.
func checkParameter(name string) string {
	switch star := strings.IndexByte(name, '*'); {
	case name == "":
		return "an empty name"
	case star >= 0 && star < len(name)-1:
		return "* stands at the end of a name only"
	case strings.ContainsAny(name, "?&=# \t"):
		return "a name without ?, &, = and blanks is meant"
	}
	return ""
}
