package caddy

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/plan/matchers"
)

// site is a site with its addresses.
type site struct {
	d        *directive
	o        importer.Object
	matchers map[string]*directive
	routes   []route
	unique   map[string][]*matchers.Config // by path
	never    map[string]bool               // by matcher that asks for hosts: whether it holds for none of the site's
}

// route is a route before it is written.
type route struct {
	path string
	o    importer.Object
}

// site makes a site a proxy, or several where directives are chosen by hosts.
func (t *translator) site(d *directive) {
	t.sites++
	d.Settle()
	if !t.byHosts(d) {
		t.one(&site{d: d, matchers: map[string]*directive{}})
	}
}

// one makes a site one proxy. Matchers that the site has already stand.
func (t *translator) one(s *site) {
	d := s.d
	s.o, s.unique = importer.NewObject(), map[string][]*matchers.Config{}
	for _, c := range d.block {
		if strings.HasPrefix(c.name(), "@") {
			if s.matchers[c.name()] == nil {
				s.matchers[c.name()] = c
			}
			t.sayAll(c, importer.Same, "a matcher; where it is used the verdict is told")
		}
	}
	t.addresses(s)
	root := importer.NewObject()
	t.inside(s, d.block, s.o, root, "/", true)
	if root.Has("servers") || root.Has("fixed_response") {
		s.add(t, d, "/", root, &matchers.Config{})
	}
	if len(s.routes) == 0 {
		if !s.o.Has("redirects") {
			t.Check("%s:%d: the site %s has nothing that headgate can serve; it answers 404", d.File, d.Line, strings.Join(d.words, " "))
		}
		s.routes = append(s.routes, route{"/", importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 404).Flow())})
	}
	var routes []importer.Object
	for _, r := range s.routes {
		// Rules of a route stand in the place of the site's, not beside them.
		if own, all := r.o.Objects("headers"), s.o.Objects("headers"); len(own) > 0 && len(all) > 0 {
			r.o.Set("headers", slices.Concat(all, own))
		}
		o := importer.NewObject()
		if r.path != "/" {
			o.Set("path", r.path)
		}
		routes = append(routes, o.Merge(r.o))
	}
	s.o.Set("routes", routes)
	t.Proxies.Set(t.siteName(d.words[0]), s.o)
}

func (t *translator) siteName(address string) string {
	address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), ",")
	return importer.Unused(t.Proxies, address, "site")
}

// addresses makes a site's addresses virtual hosts and ports.
func (t *translator) addresses(s *site) {
	var hosts, ports []string
	secure, plain := false, false
	for _, a := range addressesOf(s.d) {
		if a.path != "" {
			t.Check("%s:%d: the path /%s of the address %s was left out", s.d.File, s.d.Line, a.path, a.text)
		}
		isPlain := a.scheme == "http" || a.port == t.http || t.noHTTPS || a.scheme == "" && a.host == ""
		if isPlain && a.port == t.https {
			isPlain = false
		}
		protocol := "https"
		if isPlain {
			protocol, plain = "http", true
		} else {
			secure = true
		}
		if a.port == "" {
			a.port = map[string]string{"http": t.http, "https": t.https}[protocol]
		}
		ports = append(ports, t.port(a.port, protocol))
		if host := strings.ReplaceAll(a.host, "{$", "${"); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	t.Report.Add(importer.Entry{File: s.d.File, Line: s.d.Line, Directive: s.d.Text(), Verdict: importer.Same, Note: "a proxy with its virtual hosts"})
	if len(hosts) > 0 {
		s.o.Set("virtual_hosts", hosts)
	}
	if secure && !plain && !t.noRedirects {
		ports = append(ports, t.port(t.http, "http"))
		s.o.Set("redirect_http_to_https", true)
	}
	if secure {
		ports = append(ports, t.port(t.https, "http3"))
		if len(hosts) > 0 && !slices.ContainsFunc(s.d.block, func(c *directive) bool { return c.name() == "tls" }) {
			t.wantACME = true
			s.o.Set("acme", "main")
		}
	}
	slices.Sort(ports)
	s.o.Set("ports", slices.Compact(ports))
}

func (t *translator) port(number, protocol string) string {
	name := map[string]string{"http": "web", "https": "websecure", "http3": "quic"}[protocol]
	if number != map[string]string{"http": t.http, "https": t.https, "http3": t.https}[protocol] {
		name += "-" + number
	}
	if !t.Ports.Has(name) {
		t.Ports.Set(name, importer.NewObject().Set("address", "0.0.0.0:"+number).Set("protocol", protocol).Flow())
	}
	return name
}

// add adds a route, unless one that is as narrow takes the same requests.
func (s *site) add(t *translator, d *directive, path string, o importer.Object, m *matchers.Config) {
	for _, other := range s.unique[path] {
		if other.Count() == m.Count() && matchers.Overlap(other, m) {
			t.Say(d, importer.Impossible, "another route of the site has this path and as many matchers, and a request could match both")
			t.Check("%s:%d: the site has the path %s twice; only the first was taken over", d.File, d.Line, path)
			return
		}
	}
	s.unique[path] = append(s.unique[path], m)
	if m.Count() > 0 {
		o = importer.NewObject().Set("matchers", importer.Matchers(m)).Merge(o)
	}
	s.routes = append(s.routes, route{path, o})
}

// inside goes through the directives of a site or of a handle block. Features are set
// on o, the proxy or the route; what answers is set on main.
func (t *translator) inside(s *site, list []*directive, o, main importer.Object, base string, top bool) {
	for _, d := range s.counts(list) {
		if d.Settled() {
			continue
		}
		switch d.name() {
		case "handle", "handle_path", "route":
			t.handle(s, d, o, main, base)
		case "reverse_proxy":
			t.routed(s, d, base, func(path string, words []string, m *matchers.Config) {
				r := main
				own := path != base || m.Count() > 0
				if own {
					r = importer.NewObject()
				}
				t.reverseProxy(d, words, r)
				if !r.Has("strip_prefix") && path != "/" {
					r.Set("strip_prefix", false)
				}
				if own {
					s.add(t, d, path, r, m)
				}
			})
		case "respond", "abort", "error":
			t.routed(s, d, base, func(path string, words []string, m *matchers.Config) {
				r := importer.NewObject().Set("fixed_response", fixed(d, words))
				if path == base && m.Count() == 0 {
					main.Merge(r)
					return
				}
				s.add(t, d, path, r, m)
			})
		default:
			t.feature(s, d, o, main, base, top)
		}
	}
}

// handle makes a handle block a route, or several where its matcher names several paths.
func (t *translator) handle(s *site, d *directive, o, main importer.Object, base string) {
	if len(d.args()) == 0 { // for all that no other handle takes
		d.Settle()
		t.inside(s, d.block, main, main, base, false)
		return
	}
	t.routed(s, d, base, func(path string, _ []string, m *matchers.Config) {
		if path == base && m.Count() == 0 {
			t.inside(s, d.block, main, main, base, false)
			return
		}
		r := importer.NewObject().Set("strip_prefix", d.name() == "handle_path")
		for _, c := range d.block {
			undo(c)
		}
		t.inside(s, d.block, r, r, path, false)
		if r.Has("servers") || r.Has("fixed_response") || r.Has("redirects") {
			if !r.Has("servers") {
				r.Remove("strip_prefix")
				if !r.Has("fixed_response") {
					r.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
				}
			}
			s.add(t, d, path, r, m)
		} else {
			t.Check("%s:%d: %s has nothing that headgate can serve; its requests go to another route", d.File, d.Line, d.Text())
		}
	})
}

// undo lets a block be read again for its next path; its verdicts are in the report
// already.
func undo(d *directive) {
	d.Reopen()
	for _, c := range d.block {
		undo(c)
	}
}

// matched calls each with every path that a directive's matcher stands for, and with
// the arguments behind it. What cannot be matched is told and not called.
func (t *translator) matched(s *site, d *directive, base string, each func(path string, exact bool, words []string)) {
	words := d.args()
	patterns := []string{base}
	switch first := d.arg(0); {
	case first == "*":
		words = words[1:]
	case strings.HasPrefix(first, "/") && (len(words) > 1 || d.open):
		patterns, words = []string{first}, words[1:]
	case strings.HasPrefix(first, "@"):
		m := s.matchers[first]
		paths, problem := pathsOf(m)
		if problem != "" {
			t.sayAll(d, importer.Impossible, "the matcher %s cannot be taken over: %s", first, problem)
			t.Check("%s:%d: %s was left out: %s", d.File, d.Line, d.Text(), problem)
			return
		}
		if words = words[1:]; len(paths) > 0 {
			patterns = paths
		}
	}
	t.patterns(d, base, patterns, words, each)
}

// patterns calls each with the path of every pattern.
func (t *translator) patterns(d *directive, base string, patterns, words []string, each func(path string, exact bool, words []string)) {
	verdict, note := importer.Same, ""
	for _, pattern := range patterns {
		path, exact, what := pathOf(pattern, base)
		if what != "" {
			verdict, note = importer.Close, what
		}
		if path == "" {
			t.sayAll(d, importer.Impossible, what)
			t.Check("%s:%d: %s was left out: %s", d.File, d.Line, d.Text(), what)
			return
		}
		each(path, exact, words)
	}
	t.Say(d, verdict, note)
}

// pathOf makes the prefix of a route from a path of Caddy: /api/* or /api*.
func pathOf(pattern, base string) (path string, exact bool, what string) {
	if pattern == base || pattern == "/*" || pattern == "*" {
		return base, false, ""
	}
	switch inner, ends := strings.CutSuffix(pattern, "*"); {
	case strings.Contains(inner, "*"), strings.Contains(inner, "{"):
		return "", false, "only prefixes of paths are possible, not " + pattern
	case !ends:
		return orRoot(strings.TrimSuffix(pattern, "/")), true, "a path takes what is below it too: exact paths do not exist; " + anyLetters
	case !strings.HasSuffix(inner, "/"):
		return orRoot(inner), false, "headgate takes whole segments: " + inner + "x does not reach it; " + anyLetters
	default:
		path = orRoot(strings.TrimSuffix(inner, "/"))
		return path, false, path + " without the slash is taken, too; " + anyLetters
	}
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// pathsOf returns the paths of a named matcher that asks for nothing else, or why it
// cannot be taken over.
func pathsOf(m *directive) (paths []string, problem string) {
	c, problem := chosenBy(m)
	if problem == "" && c.rest.Count() > 0 {
		problem = "only a route can be chosen by more than its path"
	}
	return c.paths, problem
}
