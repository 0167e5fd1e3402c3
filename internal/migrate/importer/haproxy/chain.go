package haproxy

import (
	"slices"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// places are the hosts in rules, and all others.
func (f *front) places(port *port) (all []place) {
	seen := map[string]bool{}
	each := func(asked []*rule) {
		for _, r := range asked {
			for _, list := range r.when.Any {
				for _, l := range list {
					if l.Kind == rules.Host && !seen[l.Value] {
						seen[l.Value] = true
						p := place{port: port, host: l.Value}
						if l.Pattern != nil {
							p.expr = l.Atom
						}
						all = append(all, p)
					}
				}
			}
		}
	}
	each(f.rules)
	each(f.uses)
	for _, b := range f.backends() {
		each(b.rules)
	}
	return append(all, place{port: port})
}

// backends are those that the frontend sends requests to.
func (f *front) backends() (all []*backend) {
	for _, r := range f.uses {
		var o outcome
		if r.act(&o); !slices.Contains(all, o.backend) {
			all = append(all, o.backend)
		}
	}
	return all
}

// chain is the rules for the requests of a place, in order.
type chain struct {
	rules, uses []settled
	backends    map[*backend][]settled
	heads       func(*outcome)
	features    importer.Object
	atoms       []*atom
}

// byHost are rules in order, and which of them can act for a host.
type byHost struct {
	all    []*rule
	hosts  map[string][]int // those that match this host in each alternative
	common []int            // all others
}

func newByHost(all []*rule) *byHost {
	b := &byHost{all: all, hosts: map[string][]int{}}
	for i, r := range all {
		names := namesOnly(r.when)
		if len(names) == 0 {
			b.common = append(b.common, i)
		}
		for name := range names {
			b.hosts[name] = append(b.hosts[name], i)
		}
	}
	return b
}

// namesOnly are the hosts of a condition with one in each alternative, otherwise
// nil.
func namesOnly(c condition) map[string]bool {
	names := map[string]bool{}
	for _, list := range c.Any {
		i := slices.IndexFunc(list, func(l literal) bool { return l.Kind == rules.Host && !l.Not && l.Pattern == nil })
		if i < 0 {
			return nil
		}
		names[list[i].Value] = true
	}
	return names
}

// at are the rules that can act at a place, in order.
func (b *byHost) at(p place) []*rule {
	numbers := b.common
	if own := b.hosts[p.host]; p.host != "" && p.expr == nil && len(own) > 0 {
		numbers = slices.Concat(numbers, own)
		slices.Sort(numbers)
	}
	out := make([]*rule, len(numbers))
	for i, n := range numbers {
		out[i] = b.all[n]
	}
	return out
}

func (f *front) chain(p place) *chain {
	if f.rulesByHost == nil {
		f.rulesByHost, f.usesByHost = newByHost(f.rules), newByHost(f.uses)
	}
	c := &chain{backends: map[*backend][]settled{}, features: f.features}
	seen := map[string]bool{}
	take := func(asked []*rule) (out []settled) {
		for _, r := range asked {
			s, ok := r.at(p)
			if !ok {
				continue
			}
			out = append(out, s)
			for _, list := range s.any {
				for _, l := range list {
					if l.Routes() && !seen[l.Key()] {
						seen[l.Key()] = true
						c.atoms = append(c.atoms, l.Atom)
					}
				}
			}
		}
		return out
	}
	c.rules = take(f.rulesByHost.at(p))
	for _, r := range f.usesByHost.at(p) {
		s := take([]*rule{r})
		if c.uses = append(c.uses, s...); len(s) > 0 {
			var o outcome
			r.act(&o)
			c.backends[o.backend] = take(o.backend.rules)
		}
	}
	c.heads = func(o *outcome) {
		if o.backend != nil && o.fixed.Empty() {
			run(take(o.backend.heads), o, region{})
		}
		o.over = false
		run(take(f.heads), o, region{})
	}
	return c
}

// decide says what becomes of a region.
func (c *chain) decide(at region) *outcome {
	o := &outcome{features: importer.NewObject().Merge(c.features)}
	run(c.rules, o, at)
	for _, u := range c.uses {
		if o.over || o.backend != nil {
			break
		}
		u.apply(o, at)
	}
	if o.backend != nil {
		run(c.backends[o.backend], o, at)
	}
	if !o.over && o.backend == nil {
		o.fixed = importer.NewObject().Set("status", 503)
	}
	c.heads(o)
	return o
}

// routes makes the routes of a place: a proxy with those that send the same Host.
func (t *translator) routes(f *front, c *chain) (proxies []importer.Object) {
	decide := func(at region) (*outcome, string) {
		o := c.decide(at)
		route := importer.NewObject()
		route.Set("path", "/x") // so that equal outcomes have equal texts
		o.set(route)
		t.acted(o, route)
		return o, route.Key() + o.host
	}
	if len(c.atoms) == 0 { // one route, which is compared with nothing
		decide = func(at region) (*outcome, string) { return c.decide(at), "" }
	}
	pieces, full := rules.Routes("", c.atoms, decide, func(left, other rules.Piece[*outcome]) { t.leftOut(f, left, other) })
	if full {
		t.Check("%s:%d: the conditions of %s meet in more ways than routes can be written for: look at its routes with headgate explain", f.s.d.File, f.s.d.Line, f.s.d.Text())
	}
	var hosts []string // that servers get, in order
	for _, p := range pieces {
		if !slices.Contains(hosts, p.Out.host) {
			hosts = append(hosts, p.Out.host)
		}
	}
	for _, host := range hosts {
		proxy := importer.NewObject()
		var routes []importer.Object
		for _, p := range pieces {
			if p.Out.host != host {
				continue
			}
			route := importer.NewObject()
			p.Set(route)
			p.Out.set(route)
			t.acted(p.Out, route)
			for _, r := range p.Out.acted {
				t.ruled(r.d).kept = true
			}
			for _, d := range f.kept.lines {
				t.Became(d, importer.Close, route.Field("ip_filter").Or(route.Field("fixed_response")), "ip_filter: the client gets 403, the connection is not closed without an answer")
			}
			if p.Out.backend == nil && route.Has("redirects") && route.Has("basic_auth") {
				t.ruled(p.Out.by, "clients are redirected before a password is required")
			}
			routes = append(routes, route)
		}
		if host != "" {
			proxy.Set("host_header", host)
		}
		importer.Hoist(proxy, routes, hoisted)
		proxies = append(proxies, proxy.Set("routes", routes))
	}
	return proxies
}

// acted notes what the lines that act on the requests of a route became there.
func (t *translator) acted(o *outcome, route importer.Object) {
	for _, r := range o.acted {
		became := r.became
		if became == nil {
			became = fields("servers", "fixed_response")
		}
		if x := t.lines[r.d]; x != nil {
			x.acted, x.field = true, x.field.Or(became(route))
		}
	}
	if o.backend != nil {
		o.backend.reached = true
	}
	for _, c := range o.conflicts {
		what := map[string]string{"rate_limit": "of two rates the first one applies, and this one has no effect", "basic_auth": "of two lists of users the first one applies, and this one protects nothing",
			"rewrite": "of two rewrites the first one acts"}[c.field]
		t.AddVerdict(c.d, importer.Impossible, "a route has one %s: %s", c.field, what)
		t.Check("%s:%d: %s: a route has one %s: %s", c.d.File, c.d.Line, c.d.Text(), c.field, what)
	}
}

// leftOut reports a piece that headgate cannot distinguish from another one: both
// match the same header with expressions.
func (t *translator) leftOut(f *front, left, other rules.Piece[*outcome]) {
	for _, r := range left.Out.acted {
		t.ruled(r.d).left = true
	}
	if left.Out.by != nil {
		t.ruled(left.Out.by, "not where "+left.Label()+" meets "+other.Label()+", which has as many matchers: headgate cannot distinguish them, and the second one has those requests")
	}
	t.Check("%s:%d: the route %s was left out of %s: headgate cannot distinguish it from %s, which has as many matchers; give it one more", f.s.d.File, f.s.d.Line, left.Label(), f.s.d.Text(), other.Label())
}
