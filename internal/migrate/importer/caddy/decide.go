package caddy

import (
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// result is what becomes of the requests of a region.
type result struct {
	o         importer.Object
	requests  []importer.Object
	responses []importer.Object
	redirects []importer.Object
	allow     []string
	deny      []string
	host      string // host_header
	strip     string // a prefix that was removed
	by        *value // what has answered
	stripBy   *value
	rewrite   importer.Object
	folder    folder
	files     importer.Object
	filesBy   *value
	php       *scripts // nil without scripts
	w         *walker
	over      bool // it is answered
	// problem is why the requests cannot get the same response as from Caddy; they are
	// rejected.
	problem string
}

// answer ends the requests with a response.
func (o *result) answer(fixed importer.Object) {
	o.o.Set("fixed_response", fixed.Flow())
	o.over = true
}

// refuses reports whether the requests are answered by a status that keeps clients out.
func (o *result) refuses() bool {
	fixed := o.o.Object("fixed_response")
	if fixed.Empty() {
		return false
	}
	status := fixed.Text("status")
	return !o.o.Has("servers") && len(o.redirects) == 0 && (status == "401" || status == "403" || status == "404")
}

// proxies makes the proxies of a host: one for each Host that servers get.
func (w *walker) proxies() (out []importer.Object) {
	d := &decision{w: w, stands: map[string]bool{}}
	var atoms []*rules.Atom
	for _, st := range w.steps {
		for _, list := range st.when.Any {
			for _, l := range list {
				bound := l.Kind == rules.Path && (l.Name == byRegex || st.partly != nil && !l.Not)
				if l.Routes() && !bound {
					atoms = append(atoms, l.Atom)
				}
			}
		}
	}
	d.exactPaths()
	decide := func(r rules.Region) (*result, string) {
		o := d.outcome(r)
		return o, o.route(r).Key() + o.host
	}
	v := w.s.v
	pieces, full := rules.Routes("", atoms, decide, func(left, other rules.Piece[*result]) {
		w.t.Check("%s:%d: the route %s was left out: headgate cannot distinguish it from %s, which has as many matchers", v.File, v.Line, left.Label(), other.Label())
	})
	if full {
		w.t.Check("%s:%d: the matchers of %s meet in more ways than routes can be written for: look at its routes with headgate explain", v.File, v.Line, w.host)
	}
	var hosts []string
	for _, p := range pieces {
		if p.Out.problem != "" {
			w.t.Check("%s:%d: requests for %s%s get 403: %s", v.File, v.Line, w.host, p.Label(), p.Out.problem)
		}
		if !slices.Contains(hosts, p.Out.host) {
			hosts = append(hosts, p.Out.host)
		}
	}
	for _, h := range hosts {
		proxy := importer.NewObject()
		var routes []importer.Object
		for _, p := range pieces {
			if p.Out.host == h {
				o := importer.NewObject()
				p.Set(o)
				routes = append(routes, o.Merge(p.Out.route(p.Region)))
			}
		}
		if h != "" {
			proxy.Set("host_header", h)
		}
		importer.Hoist(proxy, routes, []string{"compression", "headers", "basic_auth", "forward_auth", "request_body_limit", "ip_filter", "redirects"})
		out = append(out, proxy.Set("routes", routes))
	}
	w.sayLater()
	return out
}

// decision decides what becomes of the requests of regions.
type decision struct {
	w *walker
	// stands has the paths for which the route for paths below them also represents an
	// exact path: nothing else is there.
	stands  map[string]bool
	clients map[string]bool // by networks: whether the client is in them
}

// exactPaths finds out for which exact paths a route of its own can be written.
func (d *decision) exactPaths() {
	shared := map[string]bool{"": true} // the root is no path of its own
	for _, st := range d.w.steps {
		for _, list := range st.when.Any {
			for _, l := range list {
				if l.Kind == rules.Path && !l.Not && st.partly == nil {
					if l.Name == exact {
						d.stands[l.Value] = true
					} else if l.Name != byRegex {
						shared[l.Value] = true
					}
				}
			}
		}
	}
	for path := range shared {
		delete(d.stands, path)
	}
}

// outcome runs the steps in their order. Where they depend on the client's address, it is
// what those get who are let in.
func (d *decision) outcome(r rules.Region) *result {
	var networks []string
	for _, st := range d.w.steps {
		st.when.Atoms(func(a *rules.Atom) {
			if a.Kind == rules.Client && !slices.Contains(networks, a.Value) {
				networks = append(networks, a.Value)
			}
		})
	}
	if len(networks) == 0 {
		return d.run(r, nil)
	}
	outside := d.run(r, nil)
	var others []*result
	var of []string
	for _, n := range networks {
		if inside := d.run(r, map[string]bool{n: true}); inside.route(r).Key() != outside.route(r).Key() {
			others, of = append(others, inside), append(of, n)
		}
	}
	switch {
	case len(others) == 0:
		return outside
	case len(others) == 1 && outside.refuses():
		others[0].allow = strings.Fields(of[0])
		d.filtered(others[0], outside.by, r)
		return others[0]
	case !slices.ContainsFunc(others, func(o *result) bool { return !o.refuses() }):
		for i, n := range of {
			outside.deny = append(outside.deny, strings.Fields(n)...)
			defer d.filtered(outside, others[i].by, r)
		}
		return outside
	}
	return &result{o: importer.NewObject().Set("fixed_response", fixedStatus(403).Flow()), problem: "what they get depends on the client's address, and ip_filter only says who is let in"}
}

// filtered says of what refuses clients by their address that ip_filter does.
func (d *decision) filtered(o *result, by *value, r rules.Region) {
	if by == nil {
		return
	}
	status := by.get("status_code").text
	if status == "403" {
		d.w.t.Became(by, importer.Same, o.route(r).Field("ip_filter"), "ip_filter")
		return
	}
	const note = "ip_filter: they get 403"
	by.Reopen() // it was an answer before
	d.w.t.Became(by, importer.Close, o.route(r).Field("ip_filter"), note)
	by.leaves(func(leaf *value) {
		if of := leaf.directive(); of != nil {
			d.w.t.Amend(of, importer.Close, note)
		}
	})
}

func (d *decision) run(r rules.Region, clients map[string]bool) *result {
	o := &result{w: d.w, o: importer.NewObject()}
	d.clients = clients
	for _, st := range d.w.steps {
		if o.over || o.problem != "" {
			break
		}
		d.apply(st, o, r)
	}
	o.over = o.over || o.php != nil
	switch {
	case o.problem != "":
		return &result{o: importer.NewObject().Set("fixed_response", fixedStatus(403).Flow()), problem: o.problem}
	case !o.over: // Caddy answers unhandled requests with 200 without a body
		o.answer(fixedStatus(200))
	}
	return o
}

// apply lets a step act if one of its lists holds in the region.
func (d *decision) apply(st step, o *result, r rules.Region) {
	for _, list := range st.when.Any {
		expr, holds := "", true
		for _, l := range list {
			e, yes, problem := d.holds(st, l, r, o)
			if problem == "" && e != "" && expr != "" && e != expr {
				problem = "a redirect or rewrite is for several expressions on the path at once"
			}
			if problem != "" {
				d.w.lost(st.by, problem)
				holds = false
				break
			}
			if e != "" {
				expr = e
			}
			if holds = yes; !holds {
				break
			}
		}
		switch {
		case !holds:
		case o.php != nil:
			o.besidePHP(st.by)
			return
		case st.partly == nil:
			if st.act(o); o.over {
				o.by = st.by
			}
			return
		case expr == "":
			st.partly(o, "")
			return
		default:
			st.partly(o, expr)
		}
	}
}

// holds reports whether a literal holds in a region. For a step that can be bound to an
// expression it returns that where the literal holds for a part of the region.
func (d *decision) holds(st step, l rules.Literal, r rules.Region, o *result) (expr string, yes bool, problem string) {
	switch {
	case l.Kind == rules.Client:
		return "", d.clients[l.Value] != l.Not, ""
	case l.Kind != rules.Path:
		return "", r.Within(l.Atom) != l.Not, ""
	case st.partly != nil && l.Name != "":
		return bound(l, r, o)
	case l.Name == exact:
		return "", (d.stands[l.Value] && r.Path == l.Value) != l.Not, ""
	case l.Name == open:
		return "", strings.HasPrefix(r.Path, l.Value) != l.Not, ""
	}
	return "", r.Within(l.Atom) != l.Not, ""
}

// bound is holds for a path, of a step that can be bound to an expression.
func bound(l rules.Literal, r rules.Region, o *result) (expr string, yes bool, problem string) {
	all, part := false, false
	switch l.Name {
	case exact:
		part = rules.Below(l.Value, r.Path)
	case below:
		all = r.Path != l.Value && rules.Below(r.Path, l.Value)
		part = rules.Below(l.Value, r.Path)
	case open:
		all = strings.HasPrefix(r.Path, l.Value)
		part = rules.Below(l.Value, r.Path)
	case byRegex:
		part = true
	}
	switch {
	case all:
		return "", !l.Not, ""
	case !part:
		return "", l.Not, ""
	case l.Not && l.Name == byRegex, l.Not && l.Value == "":
		return "", false, "a redirect or rewrite is for all paths but some"
	case l.Not && r.Path != l.Value:
		return "", true, "" // a region of its own gets the rest
	case l.Not: // those that an earlier redirect has matched are gone
		return "", slices.ContainsFunc(o.redirects, func(rule importer.Object) bool { return rule.Text("regex") == l.Regex }), ""
	}
	return l.Regex, true, ""
}

// route is what the result is for a region.
func (o *result) route(r rules.Region) importer.Object {
	out := importer.NewObject()
	out.Merge(o.o)
	if len(o.redirects) > 0 {
		out.Set("redirects", o.redirects)
	}
	if len(o.allow)+len(o.deny) > 0 {
		f := importer.NewObject()
		if len(o.allow) > 0 {
			f.Set("allow", compact(o.allow))
		}
		if len(o.deny) > 0 {
			f.Set("deny", compact(o.deny))
		}
		out.Set("ip_filter", f.Flow())
	}
	headers := o.responses
	if o.filesBy != nil {
		o.setFiles(out, r.Path)
	}
	if o.php != nil {
		o.setPHP(out, r.Path)
	}
	if out.Has("servers") {
		headers = slices.Concat(o.requests, o.responses)
		switch {
		case o.strip != "" && o.strip != r.Path:
			out.Set("strip_prefix", false).Set("rewrite", importer.NewObject().Set("regex", "^"+regexp.QuoteMeta(o.strip)).Set("replacement", "").Flow())
		case r.Path != "":
			out.Set("strip_prefix", o.strip != "")
		}
		if o.stripBy != nil {
			o.w.t.Became(o.stripBy, importer.Close, out.Field("strip_prefix").Or(out.Field("rewrite")), "strip_prefix")
		}
		if o.rewrite.Len() > 0 {
			out.Set("rewrite", o.rewrite)
		}
	}
	if len(headers) > 0 {
		out.Set("headers", headers)
	}
	return out
}

func compact(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return slices.Compact(all)
}
