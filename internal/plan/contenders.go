package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/matchers"
	"headgate/internal/proto/uri"
	"headgate/internal/schema"
)

// anyHost is the class of proxies without virtual hosts, below all others.
const anyHost = config.HostRegex + 1

// noHost is the class of proxies that do not have a host.
const noHost = anyHost + 1

func classWord(class config.HostClass) string {
	switch class {
	case config.HostExact:
		return "exact"
	case config.HostWildcard:
		return "wildcard"
	case config.HostRegex:
		return "regex"
	case anyHost:
		return "any"
	}
	return ""
}

// match is how the virtual hosts of a proxy have a host: the best class, and of
// expressions those that match.
type match struct {
	class    config.HostClass
	patterns []string
}

func matchHost(virtual []config.VirtualHost, name string) match {
	if len(virtual) == 0 {
		return match{class: anyHost}
	}
	m := match{class: noHost}
	_, parent, _ := strings.Cut(name, ".")
	for _, h := range virtual {
		switch {
		case h.Class == config.HostExact && h.Name == name,
			h.Class == config.HostWildcard && h.Name == parent && parent != "" && name[0] != '.':
		case h.Class == config.HostRegex && name != "" && h.Regex.MatchString(name):
			m.patterns = append(m.patterns, h.Name)
		default:
			continue
		}
		m.class = min(m.class, h.Class)
	}
	slices.SortFunc(m.patterns, comparePatterns)
	return m
}

// contenders lists every route whose virtual hosts match the host, with the reason why it
// was selected or not. winner is nil if no route was.
func (p *Plan) contenders(port *Port, winner *Route, ex *exchange.Exchange, e *Explanation) {
	matches := map[string]match{}
	best := noHost
	for name, proxy := range p.config.Proxies {
		virtual, err := proxy.Hosts()
		if err != nil {
			continue
		}
		m := matchHost(virtual, e.Host)
		matches[name] = m
		if proxy.Active && onPort(proxy, port) {
			best = min(best, m.class)
		}
	}
	e.Class = classWord(best)
	for _, name := range slices.Sorted(maps.Keys(p.config.Proxies)) {
		proxy := p.config.Proxies[name]
		m := matches[name]
		if m.class >= noHost {
			e.Others += len(proxy.Routes)
			continue
		}
		for _, r := range proxy.Routes {
			c := Contender{Proxy: name, Route: r.Label()}
			if winner != nil && winner.settings == r {
				c.Won = true
			}
			c.Why = why(proxy, r, port, m, best, winner, ex, c.Won)
			e.Routes = append(e.Routes, c)
		}
	}
	e.sortRoutes()
	if best == noHost {
		e.Notes = append(e.Notes, p.nearHost(e.Host)...)
	}
}

// why returns why a route that has the host was selected or not.
func why(proxy *config.Proxy, r *config.Route, port *Port, m match, best config.HostClass, winner *Route, ex *exchange.Exchange, won bool) string {
	path := ex.Request.Path
	prefix, _ := onePath(r.Path)
	prefix = strings.TrimSuffix(prefix, "/")
	switch {
	case won && winner.matchers != nil:
		return "the longest path with the best host match (" + classWord(best) + "), and its matchers match"
	case won:
		return "the longest path with the best host match (" + classWord(best) + ")"
	case !proxy.Active:
		return "the proxy is not active"
	case !onPort(proxy, port):
		return "the proxy is not on port " + port.Name()
	case m.class != best:
		return fmt.Sprintf("its host match (%s) ranks below %s", classWord(m.class), classWord(best))
	case path == "*" && prefix != "":
		return "the target * belongs to the path /"
	case path != "*" && !uri.Below(path, prefix):
		return fmt.Sprintf("the path %s does not begin with the segments of %s", path, r.Path)
	case winner != nil && len(prefix) < len(winner.prefix):
		return "its path is shorter than " + winner.path()
	}
	if miss := missed(r, ex); miss != "" {
		return miss
	}
	if winner != nil && r.Matchers.Count() < winner.matchers.Count() {
		return fmt.Sprintf("it has fewer matchers than %s: %d, not %d", winner.label, r.Matchers.Count(), winner.matchers.Count())
	}
	return "the expression of another proxy comes first"
}

// missed returns the matcher of a route that does not match a request, "" if all do.
func missed(r *config.Route, ex *exchange.Exchange) string {
	m, err := matchers.Compile(r.Matchers)
	if err != nil {
		return err.Error()
	}
	return m.Miss(ex)
}

// nearHost returns a hint about a similar host, for one that no proxy has.
func (p *Plan) nearHost(name string) []string {
	var known []string
	for _, proxy := range p.config.Proxies {
		known = append(known, proxy.VirtualHosts...)
	}
	slices.Sort(known)
	if near := schema.Nearest(name, known); near != "" {
		return []string{fmt.Sprintf("no proxy on this port has the host; did you mean %q?", near)}
	}
	return []string{"no proxy on this port has the host"}
}
