package traefik

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// priority is what Traefik goes by: the number, else the length of the rule.
func (r *router) priority() int {
	if p := r.n.get("priority").number(0); p != 0 {
		return p
	}
	return len(r.n.get("rule").text())
}

// place is where requests come in: a host at an entry point.
type place struct {
	host  string // a name, a wildcard, an expression with ~, or "" for all others
	entry *entry
}

// proxy is a proxy before it is written.
type proxy struct {
	o       importer.Object // features and routes
	hosts   []string
	entries []*entry
	first   *router
}

// writeProxies makes proxies of the routers: for each host and entry point routes that
// decide as the routers do by their priorities. Those that do the same are one.
func (t *translator) writeProxies() {
	var routers []*router
	for _, r := range t.routers {
		if !r.toHTTPS {
			routers = append(routers, r)
			continue
		}
		for _, h := range append(slices.Clone(r.when.hosts), "") {
			t.redirected[strings.ToLower(h)] = true
		}
	}
	slices.SortStableFunc(routers, func(a, b *router) int { return cmp.Compare(b.priority(), a.priority()) })
	var all []*proxy
	same := map[string]*proxy{}
	for _, p := range t.places(routers) {
		for _, made := range t.proxiesAt(p, routers) {
			key := made.o.Key() + "\x00" + strings.Join(made.hosts, "\x00")
			if before := same[key]; before != nil {
				before.entries = append(before.entries, made.entries...)
				continue
			}
			same[key] = made
			all = append(all, made)
		}
	}
	for _, r := range routers {
		if !t.used[r.n] {
			t.Amend(r.n.get("rule"), importer.Ignored, "routers of a higher priority get all of its requests")
			t.Check("router %s: routers of a higher priority get all of its requests, with Traefik too: a longer rule has a higher priority", r.name)
		}
	}
	for _, p := range joinHosts(all) {
		o := importer.NewObject()
		if len(p.hosts) > 0 {
			o.Set("virtual_hosts", p.hosts)
		}
		t.proxyPorts(o, p.entries, p.first)
		if named := slices.ContainsFunc(p.hosts, func(h string) bool { return !strings.HasPrefix(h, "~") }); p.first.acme != "" && named {
			o.Set("acme", p.first.acme)
		} else if p.first.acme != "" {
			t.Check("router %s: no certificate is ordered for it, since it names no host: name its hosts in domains of the acme entry %s", p.first.name, p.first.acme)
		}
		if trusted := trustedBy(p.entries); len(trusted) > 0 {
			o.Set("client_ip", importer.NewObject().Set("trusted", trusted).Flow())
		}
		t.Proxies.Set(unused(t.Proxies, p.first.name), o.Merge(p.o))
	}
}

// joinHosts makes one proxy of those that differ in their hosts alone.
func joinHosts(all []*proxy) (out []*proxy) {
	same := map[string]*proxy{}
	for _, p := range all {
		var names []string
		for _, e := range p.entries {
			names = append(names, e.name)
		}
		key := p.o.Key() + "\x00" + strings.Join(names, "\x00") + "\x00" + p.first.acme
		if before := same[key]; before != nil && len(before.hosts) > 0 && len(p.hosts) > 0 {
			before.hosts = append(before.hosts, p.hosts...)
			continue
		}
		same[key] = p
		out = append(out, p)
	}
	return out
}

// places are the hosts of routers at their entry points, and all others if a router has
// none. They are in the order of the source.
func (t *translator) places(routers []*router) (all []place) {
	for _, r := range t.routers {
		if !slices.Contains(routers, r) {
			continue
		}
		hosts := r.when.hosts
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, h := range hosts {
			for _, e := range r.entries {
				if p := (place{h, e}); !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// matches reports whether a router matches requests of a place.
func (r *router) matches(p place) bool {
	if !slices.Contains(r.entries, p.entry) {
		return false
	}
	return len(r.when.hosts) == 0 || slices.ContainsFunc(r.when.hosts, func(h string) bool { return hasHost(h, p.host) })
}

// hasHost reports whether a host is one of a name, wildcard or expression.
func hasHost(pattern, host string) bool {
	switch {
	case strings.EqualFold(pattern, host):
		return true
	case host == "" || host[0] == '~' || strings.HasPrefix(host, "*."):
		return false
	case strings.HasPrefix(pattern, "*."):
		_, parent, _ := strings.Cut(host, ".")
		return strings.EqualFold(parent, pattern[2:])
	case strings.HasPrefix(pattern, "~"):
		re, err := regexp.Compile(pattern[1:])
		return err == nil && re.MatchString(strings.ToLower(host))
	}
	return false
}

// proxiesAt makes the proxies of a place: one for each Host that servers get.
func (t *translator) proxiesAt(p place, routers []*router) (out []*proxy) {
	var here []*router
	var atoms []*rules.Atom
	for _, r := range routers {
		if !r.matches(p) {
			continue
		}
		here = append(here, r)
		r.when.rules.Atoms(func(a *rules.Atom) { atoms = append(atoms, a) })
	}
	decide := func(at rules.Region) (*router, string) {
		for _, r := range here {
			if r.when.rules.Within(at) {
				t.used[r.n] = true
				return r, r.at(at).Key() + r.host
			}
		}
		return nil, ""
	}
	pieces, full := rules.Routes("", atoms, decide, func(left, other rules.Piece[*router]) {
		t.Check("host %s: the route %s was left out: headgate cannot distinguish it from %s, which has as many matchers", p.host, left.Label(), other.Label())
		if left.Out != nil {
			t.Amend(left.Out.n.get("rule"), importer.Close, "not where "+left.Label()+" meets "+other.Label()+": headgate cannot distinguish them")
		}
	})
	if full {
		t.Check("host %s: its routers meet in more ways than routes can be written for: look at them with headgate explain", p.host)
	}
	byHost := map[string]*proxy{}
	for _, piece := range pieces {
		r := piece.Out
		if r == nil { // no router matches them, though a shorter path may: they get 404
			if !shadowed(piece, pieces) {
				continue
			}
			r = &router{name: here[0].name, n: here[0].n, route: importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 404).Flow()), acme: here[0].acme}
		}
		o := byHost[r.host]
		if o == nil {
			o = &proxy{o: importer.NewObject(), entries: []*entry{p.entry}, first: r}
			if p.host != "" {
				o.hosts = []string{p.host}
			}
			if r.host != "" {
				o.o.Set("host_header", r.host)
			}
			byHost[r.host] = o
			out = append(out, o)
		}
		route := importer.NewObject()
		if piece.Path == "" {
			route.Set("path", "/")
		}
		piece.Set(route)
		o.o.Append("routes", route.Merge(r.at(piece.Region)))
	}
	return out
}

// shadowed reports whether requests without a router would go to the route of a larger
// region.
func shadowed(left rules.Piece[*router], all []rules.Piece[*router]) bool {
	return slices.ContainsFunc(all, func(p rules.Piece[*router]) bool {
		return p.Out != nil && rules.Below(left.Path, p.Path) && (len(p.Methods) == 0 || left.Method != "" && slices.Contains(p.Methods, left.Method))
	})
}

// at is the router's route for a region, whose path may be longer than the router's.
func (r *router) at(region rules.Region) importer.Object {
	out := importer.NewObject().Merge(r.route)
	if out.Text("strip_prefix") == "true" && region.Path != strings.TrimSuffix(r.when.path, "/") {
		out.Set("strip_prefix", false).Set("rewrite", importer.NewObject().Set("regex", "^"+regexp.QuoteMeta(r.when.path)).Set("replacement", "").Flow())
	}
	return out
}
