package haproxy

import (
	"slices"

	"headgate/internal/cutover/importer"
)

// places are the hosts that rules ask for, and all others.
func (f *front) places(port *port) (all []place) {
	seen := map[string]bool{}
	each := func(rules []*rule) {
		for _, r := range rules {
			for _, list := range r.when.any {
				for _, l := range list {
					if l.kind == byHost && !seen[l.value] {
						seen[l.value] = true
						p := place{port: port, host: l.value}
						if l.pattern != nil {
							p.expr = l.atom
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

// chain is what is asked of the requests of a place, in order.
type chain struct {
	rules, uses []settled
	backends    map[*backend][]settled
	heads       func(*outcome)
	features    importer.Object
	atoms       []*atom
}

func (f *front) chain(p place) *chain {
	c := &chain{backends: map[*backend][]settled{}, features: f.features}
	seen := map[string]bool{}
	take := func(rules []*rule) (out []settled) {
		for _, r := range rules {
			s, ok := r.at(p)
			if !ok {
				continue
			}
			out = append(out, s)
			for _, list := range s.any {
				for _, l := range list {
					if l.routes() && !seen[l.key()] {
						seen[l.key()] = true
						c.atoms = append(c.atoms, l.atom)
					}
				}
			}
		}
		return out
	}
	c.rules = take(f.rules)
	for _, r := range f.uses {
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
	all, full := regions(c.atoms)
	if full {
		t.Check("%s:%d: the conditions of %s meet in more ways than routes can be written for: look at its routes with headgate explain", f.s.d.File, f.s.d.Line, f.s.d.Text())
	}
	var pieces []piece
	for _, at := range all {
		o := c.decide(at)
		route := importer.NewObject()
		route.Set("path", "/x") // so that equal outcomes have equal texts
		o.set(route)
		pieces = append(pieces, piece{region: at, text: text(route) + o.host, out: o})
	}
	pieces = needed(pieces)
	spread(pieces)
	pieces = joined(t.unambiguous(f, pieces))
	var hosts []string // that servers get, in order
	for _, p := range pieces {
		if !slices.Contains(hosts, p.out.host) {
			hosts = append(hosts, p.out.host)
		}
	}
	for _, host := range hosts {
		proxy := importer.NewObject()
		var routes []importer.Object
		for _, p := range pieces {
			if p.out.host != host {
				continue
			}
			route := importer.NewObject()
			p.set(route)
			p.out.set(route)
			if p.out.backend == nil && route.Has("redirects") && route.Has("basic_auth") {
				t.Amend(p.out.by, importer.Close, "clients are sent elsewhere before they are asked for a password")
			}
			routes = append(routes, route)
		}
		if host != "" {
			proxy.Set("host_header", host)
		}
		hoist(proxy, routes)
		proxies = append(proxies, proxy.Set("routes", routes))
	}
	return proxies
}

// unambiguous leaves out pieces that headgate could not tell from others: those of one
// path with as many matchers, which a request may match both.
func (t *translator) unambiguous(f *front, all []piece) (out []piece) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(o piece) bool {
			return o.path == p.path && o.matchers() == p.matchers() && !o.distinct(p)
		})
		if i < 0 {
			out = append(out, p)
			continue
		}
		if p.out.by != nil {
			t.Amend(p.out.by, importer.Close, "not where "+p.label()+" meets "+out[i].label()+", which has as many matchers: headgate cannot tell them apart, and the second one has those requests")
		}
		t.Check("%s:%d: the route %s was left out of %s: headgate cannot tell it from %s, which has as many matchers; give it one more", f.s.d.File, f.s.d.Line, p.label(), f.s.d.Text(), out[i].label())
	}
	return out
}

func (r region) label() string {
	text := r.path + "/"
	if r.method != "" {
		text += " " + r.method
	}
	for _, a := range r.asks {
		text += " " + a.name
	}
	return text
}
