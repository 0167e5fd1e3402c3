package nginx

import (
	"cmp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// writer makes the proxies of a site.
type writer struct {
	t         *translator
	site      *site
	name      string
	around    scope // the server, http
	locations []*location
	paths     []string
	routes    []routeOf
	lost      map[*location]bool // nothing of them could be taken over
	unreached bool               // the server answers before a location is chosen
}

// routeOf is a route with the Host that its servers get.
type routeOf struct {
	o    importer.Object
	host string
}

// outcome is what becomes of the requests of a region.
type outcome struct {
	o    importer.Object // what the route has, but for its path and matchers
	host string
	ok   bool // there is something that answers
}

// write makes the proxies of a site: one for each Host that servers get.
func (t *translator) write(s *site) {
	w := &writer{t: t, site: s, name: t.proxyName(s), around: scope{s.s.d}, lost: map[*location]bool{}}
	if t.http != nil {
		w.around = append(w.around, t.http)
	}
	t.certificate(s.s, w.name)
	w.locations = t.newLocations(s.s.d.block, nil)
	w.choosePaths()
	for _, path := range w.paths {
		w.path(path)
	}
	t.writers = append(t.writers, w)
	if len(w.routes) == 0 {
		w.routes = append(w.routes, routeOf{importer.NewObject().Set("path", "/").Set("fixed_response", importer.NewObject().Set("status", 404).Flow()), ""})
	}
	var hosts []string
	for _, r := range w.routes {
		if !slices.Contains(hosts, r.host) {
			hosts = append(hosts, r.host)
		}
	}
	if len(hosts) > 1 { // content without servers goes with the first
		hosts = slices.DeleteFunc(hosts, func(h string) bool { return h == "" })
	}
	for i, host := range hosts {
		var routes []importer.Object
		for _, r := range w.routes {
			if r.host == host || r.host == "" && i == 0 {
				routes = append(routes, r.o)
			}
		}
		name := w.name
		if i > 0 {
			name = importer.Unused(t.Proxies, w.name, "default")
		}
		t.Proxies.Set(name, w.proxy(routes, host))
	}
}

// hoisted are the features that are set on the proxy when all of its routes have the
// same.
var hoisted = []string{"client_ip", "ip_filter", "rate_limit", "redirects", "request_body_limit", "request_timeout", "basic_auth", "forward_auth", "cache", "compression", "error_pages", "headers"}

func (w *writer) proxy(routes []importer.Object, host string) importer.Object {
	t, s := w.t, w.site
	p := importer.NewObject()
	if len(s.names) > 0 {
		p.Set("virtual_hosts", s.names)
		if s.s.marked || s.s.isFirst && len(t.servers) > 1 {
			p.Comment("virtual_hosts", "nginx also sent requests for unknown hosts to this server; here they get 404.")
			t.Check("proxy %s: nginx also sent it the requests for unknown hosts", w.name)
		}
		if s.s.marked || s.s.isFirst {
			for _, d := range s.s.d.find("server_name") {
				t.Amend(d, importer.Close, "nginx also sends requests for unknown hosts to this server; here they get 404")
			}
		}
	}
	ports := slices.Concat(s.plainToo, s.ports)
	slices.Sort(ports)
	if ports = slices.Compact(ports); len(ports) < t.Ports.Len() {
		p.Set("ports", ports)
	}
	if len(s.plainToo) > 0 {
		p.Set("redirect_http_to_https", true)
	}
	if host != "" && host != "preserve" {
		p.Set("host_header", host)
	}
	if log := w.around[:1].last("access_log"); log != nil && log.arg(0) == "off" {
		p.Set("access_log", importer.NewObject().Set("enabled", false).Flow())
		t.Became(log, importer.Same, p.Field("access_log"), "")
	}
	t.Became(s.s.d, verdictOf(w.withoutLocation()), p.As(w.name), "%s", w.withoutLocation())
	for _, d := range s.s.d.find("server_name") {
		f := importer.ByItself() // any host
		if len(s.names) > 0 {
			f = p.Field("virtual_hosts")
		}
		t.Became(d, importer.Same, f, "")
	}
	importer.Hoist(p, routes, hoisted)
	if len(routes) == 1 {
		for _, name := range []string{"client_ip", "request_body_limit"} {
			if routes[0].Has(name) {
				p.CopyField(routes[0], name)
				routes[0].Remove(name)
			}
		}
	}
	return p.Set("routes", routes)
}

// withoutLocation names what nginx does for the paths that no location has: it serves files.
func (w *writer) withoutLocation() string {
	if w.unreached || w.has("/") {
		return ""
	}
	for _, r := range w.routes {
		if r.o.Text("path") == "/" && (r.o.Has("servers") || r.o.Has("fixed_response") || r.o.Has("files")) {
			return ""
		}
	}
	return "paths that no location has get 404, where nginx serves files"
}

// choosePaths collects the paths that need routes of their own.
func (w *writer) choosePaths() {
	add := func(path string) {
		if !slices.Contains(w.paths, path) {
			w.paths = append(w.paths, path)
		}
	}
	add("")
	if w.unreached = w.answersAll(); w.unreached {
		return
	}
	v := w.view(rules.Region{})
	pathsAsked := func(a *rules.Atom) {
		if a.Kind == rules.Path {
			add(a.Value)
		}
	}
	v.gather(w.site.s.d.block, pathsAsked)
	for _, d := range w.site.s.d.find("rewrite") {
		if all, ok := rules.Prefixes(d.arg(0)); ok && d.arg(2) != "permanent" && d.arg(2) != "redirect" && strings.HasPrefix(d.arg(1), "/") {
			for _, p := range all {
				add(p.Path)
			}
		}
	}
	every(w.locations, func(l *location) {
		switch {
		case l.kind == byPrefix || l.kind == byPrefixAt:
			add(l.clean())
		case l.kind == byExpr && !l.redirects():
			for _, p := range l.prefixes {
				add(p.Path)
			}
		}
		v.gather(l.d.block, pathsAsked)
	})
	every(w.locations, func(l *location) { // a prefix of the same path comes before an exact one
		if l.kind == byExact && !l.redirects() && l.path != "/" && l.answers() {
			add(l.clean())
		}
	})
	// In order of their lengths, so that a location is reported at its own path
	// first.
	slices.SortStableFunc(w.paths, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// answersAll reports whether the server itself answers everything, before a location is
// chosen.
func (w *writer) answersAll() bool {
	v, f, asked := w.view(rules.Region{}), &flow{}, false
	v.gather(w.site.s.d.block, func(*rules.Atom) { asked = true })
	v.run(f, w.site.s.d.block)
	return f.over() && !asked
}

// internal reports whether only subrequests of nginx use the location.
func (l *location) internal() bool { return len(l.d.find("internal")) > 0 }

// answers reports whether there is something in a location that may answer.
func (l *location) answers() bool {
	return l.internal() || slices.ContainsFunc(l.d.block, func(d *directive) bool {
		return d.name == "proxy_pass" || d.name == "grpc_pass" || d.name == "return" || d.name == "deny" || d.name == "try_files" || d.name == "root" || d.name == "alias"
	})
}

func (w *writer) view(r rules.Region) *view {
	return &view{t: w.t, site: w.site, region: r, vars: map[string]string{}}
}

// chosen is the location of the paths below a route's, with the expressions that
// redirect clients before it is used.
func (w *writer) chosen(path string) (l *location, before []*location) {
	l, _ = find(w.locations, path+"/", func(e *location) {
		if e.redirects() {
			before = append(before, e)
		}
	})
	if path != "" && (l == nil || l.kind == byPrefix && l.clean() != path || l.kind == byPrefixAt && l.clean() != path) {
		every(w.locations, func(e *location) {
			if e.kind == byExact && e.clean() == path && !e.redirects() && e.answers() {
				l, before = e, nil
			}
		})
	}
	return l, before
}

// path makes the routes of a path.
func (w *writer) path(path string) {
	l, before := w.chosen(path)
	if path != "" && !w.apart(path, l) {
		return
	}
	var atoms []*rules.Atom
	add := func(a *rules.Atom) {
		if a.Kind == rules.Method || a.Kind == rules.Header || a.Kind == rules.Query {
			atoms = append(atoms, a)
		}
	}
	v := w.view(rules.Region{Path: path})
	v.gather(w.site.s.d.block, add)
	for o := l; o != nil; o = o.around {
		v.gather(o.d.block, add)
	}
	decide := func(r rules.Region) (*outcome, string) {
		o := w.decide(r, path, l, before)
		if len(atoms) == 0 {
			return o, ""
		}
		return o, o.o.Key() + o.host
	}
	pieces, full := rules.Routes(path, atoms, decide, func(left, other rules.Piece[*outcome]) {
		w.t.Check("proxy %s: the route %s was left out: headgate cannot distinguish it from %s, which has as many matchers; give it one more", w.name, left.Label(), other.Label())
	})
	if full {
		w.t.Check("proxy %s, path %s: its conditions meet in more ways than routes can be written for: look at its routes with headgate explain", w.name, cmp.Or(path, "/"))
	}
	for _, p := range pieces {
		if !p.Out.ok {
			if p.Path == path && len(p.Asks)+len(p.Methods) == 0 && l != nil {
				w.lost[l] = true
			}
			continue
		}
		route := importer.NewObject()
		if p.Path == "" {
			route.Set("path", "/")
		}
		p.Set(route)
		w.routes = append(w.routes, routeOf{route.Merge(p.Out.o), p.Out.host})
		if l != nil {
			w.t.routes[l.d] = append(w.t.routes[l.d], route)
		}
	}
}

// apart reports whether a path has another location than what is above it, or conditions
// of its own.
func (w *writer) apart(path string, l *location) bool {
	asked := false
	each := func(a *rules.Atom) { asked = asked || a.Kind == rules.Path && a.Value == path }
	v := w.view(rules.Region{})
	v.gather(w.site.s.d.block, each)
	for o := l; o != nil; o = o.around {
		v.gather(o.d.block, each)
	}
	if asked {
		return true
	}
	for _, d := range w.site.s.d.find("rewrite") {
		if all, ok := rules.Prefixes(d.arg(0)); ok && slices.ContainsFunc(all, func(p rules.Prefix) bool { return p.Path == path }) {
			return true
		}
	}
	above := ""
	for _, p := range w.paths {
		if p != path && rules.Below(path, p) && len(p) > len(above) {
			above = p
		}
	}
	parent, _ := w.chosen(above)
	return parent != l
}

// decide says what becomes of a region.
func (w *writer) decide(r rules.Region, path string, l *location, before []*location) *outcome {
	v, f := w.view(r), &flow{}
	v.run(f, w.site.s.d.block)
	server := f.over()
	if !server {
		w.exactRedirects(v, f, path)
		for _, e := range before {
			w.exprRedirects(v, f, e)
		}
		if f.rewrite != nil && l != nil {
			l = w.rewritten(f, path, l)
		}
		if l != nil {
			v.run(f, l.d.block)
			w.withoutQuery(f)
		}
	}
	c := &content{writer: w, view: v, flow: f, path: path, location: l, byServer: server}
	return c.outcome()
}
