package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/basicauth"
	"headgate/internal/feature/forwardauth"
	gatefeature "headgate/internal/feature/gate"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/proto/uri"
)

// A path has one form here, and a server may read it as another one: "/ADMIN",
// "/admin;x" and "/x/..%2fadmin" go to the route / and may be /admin to its server,
// past the sign-in that the route /admin asks for. So a request is refused whose path
// may be read as one of another route that lets in fewer.

// gate is the access control of a route. Routes with the same settings have the same gate;
// nil admits everyone.
type gate struct {
	basic   *basicauth.Config
	forward *forwardauth.Config
	ip      *ipfilter.Config
	rate    *ratelimit.Config
	people  *gatefeature.Config
	// closed is the setting because of which no request reaches a server, or "".
	closed string
}

// gate returns the gate of a route whose features are f.
func (c *compiler) gate(b *body, f *config.Features) *gate {
	g := gate{basic: f.BasicAuth, forward: f.ForwardAuth, ip: f.IPFilter, rate: f.RateLimit, people: f.Gate}
	if g.rate != nil && g.rate.Mode == ratelimit.Observe {
		g.rate = nil
	}
	if !g.ip.Enforces() {
		g.ip = nil
	}
	if fixed := b.settings.FixedResponse; f.Maintenance != nil {
		g.closed = "maintenance"
	} else if fixed != nil && (fixed.Status == 401 || fixed.Status == 403 || fixed.Status == 404) {
		g.closed = "fixed_response"
	}
	if g == (gate{}) {
		return nil
	}
	known := c.shared.gates[g]
	if known == nil {
		known = &g
		c.shared.gates[g] = known
	}
	return known
}

// open is the gate of routes that have none.
var open gate

// refuses returns the feature by which a gate keeps some out whom another one lets in,
// or "".
func (g *gate) refuses(other *gate) string {
	if g == nil || g == other {
		return ""
	}
	if other == nil {
		other = &open
	}
	switch {
	case g.closed != "" && other.closed == "":
		return g.closed
	case g.ip != nil && !within(other.ip, g.ip):
		return "ip_filter"
	case g.people != nil && !fewerPeople(other.people, g.people):
		return "gate"
	case g.basic != nil && !known(other.basic, g.basic):
		return "basic_auth"
	case g.forward != nil && (other.forward == nil || !reflect.DeepEqual(g.forward, other.forward)):
		return "forward_auth"
	case g.rate != nil && !slower(other.rate, g.rate):
		return "rate_limit"
	}
	return ""
}

// within reports whether every client that passes one filter passes the other, as far as
// their settings alone determine it.
func within(one, other *ipfilter.Config) bool {
	if one == nil || one == other {
		return one != nil
	}
	if len(other.Allow) > 0 && (len(one.Allow) == 0 || !subset(one.Allow, other.Allow)) {
		return false
	}
	return subset(other.Deny, one.Deny)
}

func subset(some, all []string) bool {
	if len(some) == 0 {
		return true
	}
	set := make(map[string]bool, len(all))
	for _, s := range all {
		set[s] = true
	}
	return !slices.ContainsFunc(some, func(s string) bool { return !set[s] })
}

// known reports whether the users of one setting are users of the other.
func known(one, other *basicauth.Config) bool {
	if one == nil || one == other {
		return one != nil
	}
	set := make(map[basicauth.User]bool, len(other.Users))
	for _, u := range other.Users {
		set[u] = true
	}
	return !slices.ContainsFunc(one.Users, func(u basicauth.User) bool { return !set[u] })
}

// fewerPeople reports whether every client that passes one gate passes the other.
func fewerPeople(one, other *gatefeature.Config) bool {
	if one == nil || one == other {
		return one != nil
	}
	return subset(one.Allow, other.Allow) && subset(one.From, other.From) && subset(one.Bypasses(), other.Bypasses())
}

// slower reports whether one limit lets no more requests through than the other.
func slower(one, other *ratelimit.Config) bool {
	if one == nil || one == other {
		return one != nil
	}
	return float64(one.Requests)*other.Period.D().Seconds() <= float64(other.Requests)*one.Period.D().Seconds()
}

// loosePaths determines which routes of a host a path could be interpreted as. It is
// immutable. It is nil for hosts without routes that are more restricted than others.
type loosePaths struct {
	// routes are by their paths, as uri.AppendLoose writes them. A path without
	// routes is the beginning of another one's.
	routes map[string][]*Route
	// firsts are the first segments of routes that let in fewer than another.
	firsts map[string]bool
	// compared are the same, where they are so few that comparing is quicker than a map.
	compared []string
	// fewer is the feature with which the first gate rejects clients that the second
	// admits.
	fewer map[[2]*gate]string
}

// newLoosePaths returns the loose paths of the routes of a host, or nil.
func newLoosePaths(routes []*Route) *loosePaths {
	gates, passing := gatesOf(routes)
	l := &loosePaths{routes: map[string][]*Route{}, firsts: map[string]bool{}, fewer: map[[2]*gate]string{}}
	for _, g := range gates {
		for _, other := range passing {
			if feature := g.refuses(other); feature != "" {
				l.fewer[[2]*gate{g, other}] = feature
			}
		}
	}
	if len(l.fewer) == 0 {
		return nil
	}
	for _, r := range routes {
		path := string(uri.AppendLoose(nil, r.path()))
		l.routes[path] = append(l.routes[path], r)
		for pair := range l.fewer {
			if pair[0] == r.gate && path != "" {
				first, _, _ := strings.Cut(path[1:], "/")
				l.firsts["/"+first] = true
			}
		}
		for i, c := range path {
			if c == '/' {
				if _, known := l.routes[path[:i]]; !known {
					l.routes[path[:i]] = nil // the way to it
				}
			}
		}
	}
	for _, same := range l.routes {
		slices.SortStableFunc(same, func(a, b *Route) int { return b.matchers.Count() - a.matchers.Count() })
	}
	if len(l.firsts) <= linear {
		l.compared = slices.Sorted(maps.Keys(l.firsts))
	}
	return l
}

// gatesOf returns the gates of routes, and those of routes that pass requests on only
// if their paths have one reading.
func gatesOf(routes []*Route) (gates, passing []*gate) {
	for _, r := range routes {
		if r.gate != nil && !slices.Contains(gates, r.gate) {
			gates = append(gates, r.gate)
		}
		if r.refusesAmbiguous() && !slices.Contains(passing, r.gate) {
			passing = append(passing, r.gate)
		}
	}
	return gates, passing
}

// refusesAmbiguous reports whether it matters to a route how its paths may be read: it
// has servers, and its settings let not everything pass.
func (b *body) refusesAmbiguous() bool {
	return b.servers != nil && b.settings.AmbiguousPaths != config.AllowAmbiguous
}

// hasFirst reports whether a route that lets in fewer has the first segment of a path,
// however that is spelled. A path that is not loose is never one of such a route
// otherwise: its segments are the same for all readers.
func (l *loosePaths) hasFirst(path string) bool {
	if l == nil {
		return false
	}
	for _, first := range l.compared {
		if uri.IsFirst(path, first) {
			return true
		}
	}
	if len(l.firsts) <= linear {
		return false
	}
	var buf [128]byte
	return l.firsts[string(uri.AppendFirst(buf[:0], path))]
}

var readings = sync.Pool{New: func() any { return &uri.Readings{} }}

// stricter returns why a path that r takes may be one of another route, which lets in
// fewer, or "".
func (l *loosePaths) stricter(ex *exchange.Exchange, path string, r *Route) string {
	if l == nil || !r.refusesAmbiguous() {
		return ""
	}
	all := readings.Get().(*uri.Readings)
	defer readings.Put(all)
	for all.Reset(path); ; {
		reading, ok := all.Next()
		if !ok {
			return ""
		}
		if all.Excessive() {
			return "the path has more possible interpretations than headgate checks"
		}
		routes := l.longest(ex, reading)
		for i, other := range routes {
			if !winsPath(ex, routes, i) {
				continue
			}
			if feature := l.fewer[[2]*gate{other.gate, r.gate}]; feature != "" && other.body != r.body {
				return "a server may read the path as one of route " + other.label + " of proxy " + other.proxy.Name + ", whose " + feature + " lets in fewer"
			}
		}
	}
}

// winsPath reports whether the i-th of routes with one loose path, of which those with the
// most matchers come first, is the one of its path that takes a request.
func winsPath(ex *exchange.Exchange, routes []*Route, i int) bool {
	r := routes[i]
	for _, first := range routes[:i] {
		if first.prefix == r.prefix && first.matchers.Match(ex) {
			return false
		}
	}
	return r.matchers.Match(ex)
}

// longest returns the routes with the longest path that is a prefix of a reading, by
// whole segments, and where one of them has matchers that match.
func (l *loosePaths) longest(ex *exchange.Exchange, reading []byte) []*Route {
	best := l.routes[""]
	for i := 1; i <= len(reading); i++ {
		if i < len(reading) && reading[i] != '/' {
			continue
		}
		routes, way := l.routes[string(reading[:i])]
		if !way {
			break
		}
		if slices.ContainsFunc(routes, func(r *Route) bool { return r.matchers.Match(ex) }) {
			best = routes
		}
	}
	return best
}

// ambiguous returns the answer to a request that r takes although its path may be read
// as one of a stricter route of the host, or nil.
func (h *hosts) ambiguous(ex *exchange.Exchange, name, path string, r *Route) *exchange.Answer {
	if !h.guarded || path == "*" {
		return nil
	}
	spelling := uri.SpellingOf(path)
	if spelling == uri.Plain {
		return nil
	}
	if spelling == uri.Spelled {
		if p := h.exact[name]; p != nil && !p.loose.hasFirst(path) {
			return nil // most of them, without a function for each table
		}
	}
	why := ""
	h.each(name, func(p *paths) bool {
		if spelling == uri.Loose || p.loose.hasFirst(path) {
			why = p.loose.stricter(ex, path, r)
		}
		return why == ""
	})
	if why == "" {
		return nil
	}
	return exchange.Fail(exchange.AmbiguousPath, why)
}

// each calls visit with the path tables of the class that has a host, as route finds
// it, until it returns false.
func (h *hosts) each(name string, visit func(*paths) bool) {
	if p := h.exact[name]; p != nil {
		visit(p)
		return
	}
	if i := strings.IndexByte(name, '.'); i > 0 {
		if p := h.wildcard[name[i+1:]]; p != nil {
			visit(p)
			return
		}
	}
	matched := false
	for i := range h.patterns {
		if p := &h.patterns[i]; name != "" && p.regex.MatchString(name) {
			if matched = true; !visit(p.paths) {
				return
			}
		}
	}
	if !matched && h.any != nil {
		visit(h.any)
	}
}
