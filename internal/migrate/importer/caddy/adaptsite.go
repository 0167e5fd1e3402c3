package caddy

import (
	"net"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// siteBlock is a site of a Caddyfile.
type siteBlock struct {
	d    *directive
	keys []address
	bind []string
}

// newSite reads the addresses of a site, and the directives that say what it listens on and
// where its certificates come from.
func (t *translator) newSite(d *directive) *siteBlock {
	t.Became(d, importer.Same, importer.Field{}, "a proxy with its virtual hosts and ports")
	s := &siteBlock{d: d, keys: addressesOf(d), bind: t.bind}
	if slices.ContainsFunc(d.words, func(w string) bool { return defaults(w) != w }) {
		t.Check("%s:%d: %s: the default of the environment was put in", d.File, d.Line, d.Text())
	}
	var hosts []string
	anyHost := false
	for _, k := range s.keys {
		if k.host != "" && t.secured(k) {
			hosts = append(hosts, k.host)
		}
		anyHost = anyHost || k.host == "" && t.secured(k)
	}
	for _, c := range d.block {
		switch c.name() {
		case "bind":
			s.bind = bindOf(c)
			t.Became(c, importer.Same, importer.Field{}, "the address of its ports")
		case "tls":
			t.tls(c, hosts)
			if anyHost {
				hosts = append(hosts, "")
			}
			t.demand(c, hosts)
		}
	}
	return s
}

// bindOf returns the addresses that a site listens on.
func bindOf(d *directive) []string {
	if len(d.args()) > 0 {
		return d.args()
	}
	return []string{""}
}

// secured reports whether TLS is spoken for an address.
func (t *translator) secured(k address) bool {
	return k.scheme == "https" || k.port == t.https || k.scheme != "http" && k.port != t.http && k.host != ""
}

// listeners are what an address listens on.
func (t *translator) listeners(s *siteBlock, k address) (out []string) {
	port := k.port
	switch {
	case port != "":
	case k.scheme == "http":
		port = t.http
	default:
		port = t.https
	}
	for _, host := range s.bind {
		network, rest, named := strings.Cut(host, "/")
		if named && !strings.HasPrefix(network, "tcp") { // such as unix
			out = append(out, host)
			continue
		}
		if named {
			host = rest
		}
		out = append(out, net.JoinHostPort(strings.Trim(host, "[]"), port))
	}
	return out
}

// binding is a part of a site: the addresses of it that one listener has.
type binding struct {
	site *siteBlock
	keys []address
}

// listener has the parts of sites that listen on the same.
type listener struct {
	addresses []string
	parts     []binding
}

// listenersOf puts sites together that listen on the same addresses.
func (t *translator) listenersOf(sites []*siteBlock) (out []listener) {
	var order []string
	by := map[string][]binding{}
	for _, s := range sites {
		for _, k := range s.keys {
			for _, at := range t.listeners(s, k) {
				parts, known := by[at]
				if !known {
					order = append(order, at)
				}
				if n := len(parts) - 1; n >= 0 && parts[n].site == s {
					parts[n].keys = append(parts[n].keys, k)
				} else {
					parts = append(parts, binding{s, []address{k}})
				}
				by[at] = parts
			}
		}
	}
	for _, at := range order {
		i := slices.IndexFunc(out, func(l listener) bool { return slices.EqualFunc(l.parts, by[at], sameBinding) })
		if i >= 0 {
			out[i].addresses = append(out[i].addresses, at)
			continue
		}
		out = append(out, listener{[]string{at}, by[at]})
	}
	return out
}

func sameBinding(a, b binding) bool { return a.site == b.site && slices.Equal(a.keys, b.keys) }

// adaptSites makes the servers of the sites.
func (t *translator) adaptSites(sites []*siteBlock) *value {
	servers := &value{object: true, fields: map[string]*value{}}
	for i, l := range t.listenersOf(sites) {
		slices.SortStableFunc(l.parts, moreSpecific)
		servers.set("srv"+strings.Repeat("i", i), t.adaptServer(l))
	}
	return servers
}

// moreSpecific sorts sites as Caddy does: a site without a host comes last, one with a star
// behind those without, and longer hosts and paths come first.
func moreSpecific(a, b binding) int {
	hostA, pathA, wildA := specificity(a)
	hostB, pathB, wildB := specificity(b)
	before := func(yes bool) int {
		if yes {
			return -1
		}
		return 1
	}
	switch {
	case hostA == 0 || hostB == 0:
		if hostA == hostB {
			return pathB - pathA
		}
		return before(hostB == 0)
	case wildA != wildB:
		return before(wildB)
	case hostA != hostB:
		return hostB - hostA
	}
	return pathB - pathA
}

func specificity(b binding) (host, path int, wild bool) {
	length := func(s string) int { return len(s) - strings.Count(s, "*") }
	for _, k := range b.keys {
		wild = wild || k.host == "" || strings.Contains(k.host, "*")
		host, path = max(host, length(k.host)), max(path, length(k.path))
	}
	return host, path, wild
}

// adaptServer makes the server of a listener.
func (t *translator) adaptServer(l listener) *value {
	first := l.parts[0].site.d
	server := object(first).set("listen", texts(first, l.addresses))
	routes, skip, secured := list(first), list(first), false
	for _, part := range l.parts {
		d := part.site.d
		b := t.adapter.block(nil)
		inner := b.list(d, b.routes(d.block, true))
		for _, e := range b.errors {
			t.leaveOut(e, "write the pages in error_pages, with upstream: true for what servers answer")
		}
		r := object(d)
		if sets := matcherSets(d, part.keys); sets != nil {
			r.set("match", sets)
		}
		if r.fields["match"] == nil && len(l.parts) == 1 { // Caddy sees the hosts of its routes then
			secured = secured || len(firstHosts(inner)) > 0 && !t.onlyPlain(server)
		}
		r.set("handle", list(d, handler(d, "subroute").set("routes", inner)))
		routes.list = append(routes.list, quiet(r.set("terminal", text(d, "true"))))
		for _, k := range part.keys {
			if secured = secured || t.secured(k); k.scheme == "http" && k.host != "" {
				skip.list = append(skip.list, text(d, k.host))
			}
		}
	}
	https := server.at(first, "automatic_https").set("skip", skip)
	if t.noHTTPS {
		https.put(first, "disable", "true")
	}
	if t.noRedirects {
		https.put(first, "disable_redirects", "true")
	}
	if secured {
		server.set("tls_connection_policies", list(first, object(first).put(first, "match", "sni")))
	} else {
		https.put(first, "disable", "true")
	}
	if t.forwarding != nil {
		server.set("trusted_proxies", t.forwarding)
	}
	for _, v := range []*value{server.get("listen"), https, server.get("tls_connection_policies")} {
		quiet(v)
	}
	return server.set("routes", routes)
}

// quiet gives the values that a site itself is made of no verdict of their own, apart from
// its routes: the site has it.
func quiet(v *value) *value {
	v.Skip()
	for _, k := range v.keys {
		if k != "handle" {
			quiet(v.fields[k])
		}
	}
	for _, c := range v.list {
		quiet(c)
	}
	return v
}

// matcherSets makes matchers for the hosts and paths of addresses; nil if one of them
// matches all.
func matcherSets(d *directive, keys []address) *value {
	sets := list(d)
	at := map[string]*value{}
	var everything []string // paths that match on every host
	for _, k := range keys {
		if k.host == "" {
			everything = append(everything, k.path)
		}
	}
	for _, k := range keys {
		if k.host == "" && k.path == "" {
			return nil
		}
		set := at[k.path]
		if set == nil {
			set = object(d)
			at[k.path] = set
			sets.list = append(sets.list, set)
			if k.path != "" {
				set.add(d, "path", "/"+k.path)
			}
		}
		if k.host != "" && !slices.Contains(everything, k.path) {
			set.add(d, "host", k.host)
		}
	}
	return sets
}
