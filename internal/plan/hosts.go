package plan

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/exchange"
)

// hosts is the host table of a port. The class of a host is decided first, by
// the best one that has it: exact name, wildcard, expression, any. Then the
// longest path of all proxies of that class wins. There is no way back: where an
// exact name has no route for a path, a wildcard that has one is not asked.
type hosts struct {
	exact map[string]*paths
	// wildcard is by what follows the first label.
	wildcard map[string]*paths
	patterns []pattern
	any      *paths
	// guarded says that a table has loose paths.
	guarded bool
}

// pattern is an expression with the routes of its proxies.
type pattern struct {
	regex *regexp.Regexp
	paths *paths
}

// route returns the route for a request with a host, as hostName gives it, and a path in
// its one form; nil if there is none. A request without a host, which HTTP/1.0
// allows, goes to proxies without virtual hosts.
func (h *hosts) route(ex *exchange.Exchange, name, path string) *Route {
	if p := h.exact[name]; p != nil {
		return p.find(ex, path)
	}
	if len(h.wildcard) > 0 {
		if i := strings.IndexByte(name, '.'); i > 0 {
			if p := h.wildcard[name[i+1:]]; p != nil {
				return p.find(ex, path)
			}
		}
	}
	if len(h.patterns) > 0 && name != "" {
		if r, matched := h.byPattern(ex, name, path); matched {
			return r
		}
	}
	if h.any == nil {
		return nil
	}
	return h.any.find(ex, path)
}

// byPattern returns the longest route of all expressions that match. Among equally long
// ones, the one with the most matchers is used, and then that of the first expression.
func (h *hosts) byPattern(ex *exchange.Exchange, name, path string) (best *Route, matched bool) {
	for i := range h.patterns {
		p := &h.patterns[i]
		if !p.regex.MatchString(name) {
			continue
		}
		matched = true
		if r := p.paths.find(ex, path); r != nil && (best == nil || r.before(best)) {
			best = r
		}
	}
	return best, matched
}

// before reports whether a route of one expression goes before that of another one.
func (b *body) before(other *Route) bool {
	if len(b.prefix) != len(other.prefix) {
		return len(b.prefix) > len(other.prefix)
	}
	return b.matchers.Count() > other.matchers.Count()
}

// sortPatterns puts expressions into the order in which they win where their
// paths are equally long: the longer text first, then by the alphabet. The order
// of the file does not matter.
func (h *hosts) sortPatterns() {
	slices.SortFunc(h.patterns, func(a, b pattern) int { return comparePatterns(a.regex.String(), b.regex.String()) })
}

func comparePatterns(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

// hostName returns the host of an authority as the table has it: in lower case,
// without a port and without a dot at its end, an IPv6 address in its shortest
// form.
func hostName(authority string, text *exchange.Text) string {
	name := authority
	if len(name) > 0 && name[0] == '[' {
		return literal(name, text)
	}
	upper := false
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == ':' {
			name = name[:i]
			break
		}
		upper = upper || c-'A' < 26
	}
	if n := len(name); n > 0 && name[n-1] == '.' {
		name = name[:n-1]
	}
	if !upper {
		return name
	}
	b := text.Buffer()
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		b = append(b, c)
	}
	return text.End(b)
}

// literal returns an IPv6 address in brackets. One that is none names no host.
func literal(authority string, text *exchange.Text) string {
	end := strings.IndexByte(authority, ']')
	if end < 0 {
		return ""
	}
	a, err := netip.ParseAddr(authority[1:end])
	if err != nil {
		return ""
	}
	return text.End(append(a.AppendTo(append(text.Buffer(), '[')), ']'))
}
