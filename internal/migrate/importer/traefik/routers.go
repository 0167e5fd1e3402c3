package traefik

import (
	"net"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// router is one alternative of a router's rule, which becomes a route.
type router struct {
	name    string
	n       *node
	when    condition
	entries []*entry
	tls     bool
	acme    string
	route   importer.Object
	host    string // host_header, "" for the client's
	toHTTPS bool   // it does nothing but send clients to https
}

// httpRouters reads the routers, and makes each alternative of a rule a route.
func (t *translator) httpRouters() {
	for _, n := range t.root.get("http", "routers").children() {
		rule := n.get("rule")
		if parents := n.get("parentRefs"); parents.is() {
			t.sayAll(n, importer.Impossible, "a router below others, whose rules and middlewares hold for it too, is not translated")
			t.Check("router %s was left out: it is below %s, whose middlewares protect it: write its route by hand", n.name(), strings.Join(parents.texts(), ", "))
			continue
		}
		alternatives, err := parseRule(rule.text())
		if err != nil || len(alternatives) == 0 {
			t.sayAll(n, importer.Impossible, "the rule cannot be read: %v", err)
			t.Check("router %s was left out: its rule cannot be read: %v", n.name(), err)
			continue
		}
		t.router(n, rule, alternatives)
	}
	t.writePorts()
}

func (t *translator) router(n, rule *node, alternatives [][]match) {
	verdict, note := importer.Same, "hosts and a path"
	taken := 0
	for _, all := range alternatives {
		when, problem := conditionOf(all)
		r := &router{name: n.name(), n: n, when: when}
		if problem == "" && len(when.other) > 0 {
			problem = "headgate cannot choose a route by " + namesOf(when.other)
		}
		if problem != "" {
			verdict, note = importer.Impossible, problem
			t.Check("router %s was left out in part or whole: %s (%s)", n.name(), problem, rule.text())
			continue
		}
		taken++
		switch {
		case when.exact:
			verdict, note = importer.Close, "a path also matches paths below it: there are no exact paths"
		case when.loose && verdict == importer.Same:
			verdict, note = importer.Close, "headgate matches whole segments: "+when.path+"x does not reach it"
		case when.slashed && verdict == importer.Same:
			verdict, note = importer.Close, when.path+" without the slash matches too"
		case len(when.allow) > 0 && verdict == importer.Same:
			verdict, note = importer.Close, "other clients get 403, and not another router"
		}
		t.routeOf(r)
		t.routers = append(t.routers, r)
		became := served(r.route)
		if r.toHTTPS {
			became = importer.Value("redirect_http_to_https", true)
		}
		t.ruled[rule] = t.ruled[rule].Or(became)
	}
	if taken == 0 {
		t.sayAll(n, importer.Impossible, note)
		return
	}
	t.becameAll(rule, verdict, t.ruled[rule], "%s", note)
	t.becameAll(n.get("priority"), importer.Same, importer.ByItself(), "routes decide as the routers do in their order")
	t.sayAll(n.get("ruleSyntax"), importer.Ignored, "both syntaxes are read")
	t.sayAll(n.get("observability"), importer.Ignored, "logs and metrics are for all routes")
}

func namesOf(other []match) string {
	var names []string
	for _, m := range other {
		text := m.name
		if m.not {
			text = "!" + text
		}
		names = append(names, text)
	}
	return strings.Join(names, ", ")
}

// routeOf fills in a route: entry points, TLS, middlewares and service.
func (t *translator) routeOf(r *router) {
	r.route = importer.NewObject()
	t.entryPoints(r)
	t.routerTLS(r)
	if len(r.when.allow) > 0 {
		t.allow(r, r.when.allow)
		t.Check("router %s chooses by the client's address; others get 403 here, not another router", r.name)
	}
	for _, e := range r.entries { // what an entry point has for all of its routers comes first
		t.middlewares(r, e.n.get("http", "middlewares"))
	}
	t.middlewares(r, r.n.get("middlewares"))
	if r.toHTTPS {
		t.sayAll(r.n.get("service"), importer.Ignored, "clients are sent to https before")
		return
	}
	if !r.route.Has("strip_prefix") && !r.route.Has("rewrite") {
		r.route.Set("strip_prefix", false)
	}
	t.service(r, r.n.get("service").text(), 0)
	if r.route.Has("servers") {
		r.route.Append("headers", importer.NewObject().Set("direction", "request").Set("name", "X-Real-Ip").Set("value", "{client_ip}").Flow())
	}
	t.becameAll(r.n.get("service"), importer.Close, served(r.route), "servers of the route; X-Forwarded-Port, -Server and -Prefix are not sent")
}

// entryPoints finds the entry points of a router: those that it names, otherwise all.
func (t *translator) entryPoints(r *router) {
	names := r.n.get("entryPoints").texts()
	for _, name := range names {
		if e := t.entries[strings.ToLower(name)]; e != nil {
			r.entries = append(r.entries, e)
		} else {
			t.Check("router %s names the entry point %s, which is not there", r.name, name)
		}
	}
	r.n.get("entryPoints").leaves(func(leaf *node) {
		became := importer.Field{}
		for _, e := range r.entries {
			became = became.Or(importer.Value("address", e.address))
		}
		t.Became(leaf, importer.Same, became, "ports")
	})
	if len(names) == 0 {
		for _, name := range t.names {
			r.entries = append(r.entries, t.entries[name])
		}
	}
}

// routerTLS translates the TLS of a router and of its entry points.
func (t *translator) routerTLS(r *router) {
	if tls := r.n.get("tls"); tls.is() && tls.text() != "false" {
		r.tls, r.acme = true, tls.get("certResolver").text()
		t.becameAll(tls.get("certResolver"), importer.Same, importer.Value("acme", r.acme), "acme")
		for _, d := range tls.get("domains").list {
			if r.acme == "" {
				t.sayAll(d, importer.Ignored, "without a resolver no certificate is ordered")
			}
			t.becameAll(d, importer.Close, importer.Value("acme", r.acme), "its hosts are ordered; name a wildcard in domains of the acme entry")
		}
		t.tlsOptions(r, tls.get("options"))
		if tls.text() != "" || len(tls.keys) == 0 {
			t.becameAll(tls, importer.Same, importer.Value("protocol", "https"), "an https port")
		}
	}
	for _, e := range r.entries {
		if resolver := e.n.get("http", "tls", "certResolver").text(); r.acme == "" && e.secure {
			r.acme = resolver
		}
		if r.tls && len(r.entries) == 1 {
			e.secure = true
		}
	}
}

// tlsOptions translates the TLS options that a router names.
func (t *translator) tlsOptions(r *router, o *node) {
	if !o.is() {
		return
	}
	name, _, _ := strings.Cut(o.text(), "@")
	n := t.root.get("tls", "options", name)
	switch {
	case n.is():
		t.becameAll(o, importer.Close, through(n), "TLS options are settings of the port")
	case name == "default":
		t.becameAll(o, importer.Same, importer.ByItself(), "")
	default:
		t.sayAll(o, importer.Impossible, "there are no such TLS options in the files that were given")
		t.Check("router %s: the TLS options %s are not in the files that were given: set tls.min_version and tls.client_auth of the https port", r.name, name)
	}
}

// middlewares applies a list of middlewares to the route of a router.
func (t *translator) middlewares(r *router, list *node) {
	for _, name := range list.texts() {
		t.middleware(r, name, 0)
	}
	t.sayMiddlewares(list)
}

// proxyPorts names the ports of a proxy where it is not on all, and sends clients from
// http to https.
func (t *translator) proxyPorts(o importer.Object, entries []*entry, r *router) {
	var names []string
	secure, redirected := false, slices.ContainsFunc(r.when.hosts, func(h string) bool { return t.redirected[strings.ToLower(h)] }) || t.redirected[""] && len(r.when.hosts) > 0 && !r.onPlain()
	for _, e := range entries {
		names = append(names, e.name)
		if e.secure && e.http3 {
			names = append(names, e.name+"-http3")
		}
		secure = secure || e.secure
	}
	for _, name := range t.names {
		e := t.entries[name]
		if secure && !e.secure && !e.udp && !slices.Contains(entries, e) && (e.toHTTPS || redirected) {
			names = append(names, e.name)
			redirected = true
		}
	}
	if secure && redirected {
		o.Set("redirect_http_to_https", true)
	}
	if len(names) < t.Ports.Len() {
		o.Set("ports", names)
	}
}

func (r *router) onPlain() bool {
	return slices.ContainsFunc(r.entries, func(e *entry) bool { return !e.secure })
}

func trustedBy(entries []*entry) (trusted []string) {
	for _, e := range entries {
		for _, p := range e.n.get("forwardedHeaders", "trustedIPs").texts() {
			if !slices.Contains(trusted, p) {
				trusted = append(trusted, p)
			}
		}
	}
	return trusted
}

// unused returns a name that no object has. Traefik writes the provider behind an @.
func unused(in importer.Object, wish string) string {
	name, _, _ := strings.Cut(wish, "@")
	return importer.Unused(in, name, "router")
}

// onlyTCP reports whether an entry point serves TCP routers and no HTTP ones.
func (t *translator) onlyTCP(e *entry) bool {
	tcp := false
	for _, n := range t.root.get("tcp", "routers").children() {
		for _, name := range n.get("entryPoints").texts() {
			tcp = tcp || strings.EqualFold(name, e.name) && strings.Contains(n.get("rule").text(), "`*`")
		}
	}
	return tcp && !slices.ContainsFunc(t.routers, func(r *router) bool { return len(r.n.get("entryPoints").texts()) > 0 && slices.Contains(r.entries, e) })
}

// tcpRouters makes TCP routers TCP proxies: by address, or by the name in TLS.
func (t *translator) tcpRouters() {
	for _, n := range t.root.get("tcp", "routers").children() {
		servers := t.streamServers("tcp", n)
		alternatives, err := parseRule(n.get("rule").text())
		if err != nil || len(servers) == 0 || len(alternatives) != 1 {
			t.sayAll(n, importer.Impossible, "one HostSNI and a service with servers are possible")
			t.Check("TCP router %s was left out", n.name())
			continue
		}
		when, problem := conditionOf(alternatives[0])
		protocols := when.protocols()
		if problem != "" || len(when.other) > 0 {
			t.sayAll(n, importer.Impossible, "rules of TCP routers are HostSNI and ALPN only")
			t.Check("TCP router %s was left out: its rule has more than HostSNI and ALPN", n.name())
			continue
		}
		tls := t.streamTLS(n, len(when.hosts) > 0)
		became := importer.Field{}
		for _, name := range n.get("entryPoints").texts() {
			e := t.entries[strings.ToLower(name)]
			if e == nil {
				continue
			}
			named := len(when.hosts)+len(protocols) > 0
			if !named && (t.shared(e) || t.hasRest(e)) {
				t.Check("TCP router %s was left out at the entry point %s: HTTP or names in TLS are served there too, and an address of headgate has one or the other: give it an address of its own", n.name(), e.name)
				continue
			}
			o := importer.NewObject()
			if named && !t.onlyTCP(e) {
				e.secure = true
				o.Set("port", e.name)
				t.Ports.Set(e.name, importer.NewObject().Set("address", e.address).Set("protocol", "https"))
			} else {
				o.Set("address", e.address)
			}
			if len(when.hosts) > 0 {
				o.Set("sni", when.hosts)
			}
			if len(protocols) > 0 {
				o.Set("alpn", protocols)
			}
			if !tls.Empty() {
				o.Set("tls", tls)
			}
			t.proxyProtocol(n, o)
			t.streamCheck(n, o)
			t.TCP.Set(unused(t.TCP, n.name()), o.Set("servers", servers))
			became = became.Or(o.Field("servers"))
		}
		t.becameAll(n, importer.Same, became, "a TCP proxy")
	}
}

// streamTLS returns how a TCP router terminates TLS, empty if it does not.
func (t *translator) streamTLS(n *node, named bool) importer.Object {
	at := n.get("tls")
	if !at.is() || at.text() == "false" || at.get("passthrough").on() {
		return importer.Object{}
	}
	tls := importer.NewObject()
	name, _, _ := strings.Cut(at.get("options").text(), "@")
	if name == "" {
		name = "default"
	}
	options := t.root.get("tls", "options", name)
	if protocols := options.get("alpnProtocols").texts(); len(protocols) > 0 {
		tls.Set("alpn", protocols)
		t.becameAll(options.get("alpnProtocols"), importer.Same, tls.Field("alpn"), "alpn in tls of the TCP proxy")
	}
	tls = tls.Merge(t.options(options))
	if at.get("options").is() && !options.is() {
		t.Check("TCP router %s: the TLS options %s are not in the files that were given: set min_version and client_auth in tls of the TCP proxy", n.name(), name)
	}
	switch resolver := at.get("certResolver").text(); {
	case resolver == "":
	case named:
		tls.Set("acme", resolver)
	default:
		t.Check("TCP router %s: a proxy without sni gets no certificates by ACME: name its hosts in domains of the ACME entry %s", n.name(), resolver)
	}
	return tls.Flow()
}

// hasRest reports whether a TCP proxy accepts everything on an entry point already.
func (t *translator) hasRest(e *entry) bool {
	for _, name := range t.TCP.Names() {
		if o := t.TCP.Object(name); o.Text("address") == e.address && !o.Has("sni") && !o.Has("alpn") {
			return true
		}
	}
	return false
}

// shared reports whether HTTP routers, or TCP routers by the name in TLS, are on an entry
// point that is not only for TCP.
func (t *translator) shared(e *entry) bool {
	if t.onlyTCP(e) {
		return false
	}
	if !t.Ports.Object(e.name).Empty() {
		return true
	}
	return slices.ContainsFunc(t.root.get("tcp", "routers").children(), func(n *node) bool {
		return n.get("tls", "passthrough").on() && !strings.Contains(n.get("rule").text(), "`*`") && slices.ContainsFunc(n.get("entryPoints").texts(), func(name string) bool { return strings.EqualFold(name, e.name) })
	})
}

func (t *translator) udpRouters() {
	for _, n := range t.root.get("udp", "routers").children() {
		servers := t.streamServers("udp", n)
		if len(servers) == 0 {
			t.sayAll(n, importer.Impossible, "its service has no servers")
			continue
		}
		became := importer.Field{}
		for _, name := range n.get("entryPoints").texts() {
			if e := t.entries[strings.ToLower(name)]; e != nil {
				o := importer.NewObject().Set("address", e.address).Set("servers", servers)
				t.UDP.Set(unused(t.UDP, n.name()), o)
				became = became.Or(o.Field("servers"))
			}
		}
		t.becameAll(n, importer.Same, became, "a UDP proxy")
	}
}

// proxyProtocol sends the PROXY header to the servers of a TCP router if its service
// requires it.
func (t *translator) proxyProtocol(n *node, o importer.Object) {
	name, _, _ := strings.Cut(n.get("service").text(), "@")
	p := t.root.get("tcp", "services", name, "loadBalancer", "proxyProtocol")
	if !p.is() {
		return
	}
	version := "v2"
	if p.get("version").text() == "1" {
		version = "v1"
	}
	t.becameAll(p, importer.Same, o.Set("proxy_protocol", version).Field("proxy_protocol"), "proxy_protocol")
}

// streamCheck adds the health check of its service, or one of the services of a
// weighted one, to the servers of a TCP router.
func (t *translator) streamCheck(n *node, o importer.Object) {
	name, _, _ := strings.Cut(n.get("service").text(), "@")
	names := []string{name}
	for _, one := range t.root.get("tcp", "services", name, "weighted", "services").list {
		names = append(names, one.get("name").text())
	}
	for _, name := range names {
		h := t.root.get("tcp", "services", name, "loadBalancer", "healthCheck")
		if !h.is() {
			continue
		}
		check := importer.NewObject()
		for _, field := range []struct{ from, to string }{{"interval", "interval"}, {"unhealthyInterval", "unhealthy_interval"}, {"timeout", "timeout"}} {
			if v := h.get(field.from); v.text() != "" {
				t.becameAll(v, importer.Same, check.Set(field.to, duration(v.text())).Field(field.to), "health_check.%s", field.to)
			}
		}
		for _, field := range []string{"send", "expect", "port"} {
			t.sayAll(h.get(field), importer.Impossible, "a server is healthy when it accepts a connection at its own port: nothing is sent or compared")
		}
		o.Set("health_check", check.Flow())
	}
}

// streamServers are the servers of a TCP or UDP router's service.
func (t *translator) streamServers(kind string, n *node) (servers []importer.Object) {
	name, _, _ := strings.Cut(n.get("service").text(), "@")
	return t.serversOfStream(kind, name, 0)
}

// serversOfStream are the servers of a TCP or UDP service. Those of a weighted service have
// the weights of their services.
func (t *translator) serversOfStream(kind, name string, depth int) (servers []importer.Object) {
	s := t.root.get(kind, "services", name)
	if depth > maxDepth {
		return nil
	}
	for _, one := range s.get("weighted", "services").list {
		part, became := t.serversOfStream(kind, one.get("name").text(), depth+1), importer.Field{}
		for _, server := range part {
			servers = append(servers, server.Set("weight", one.get("weight").number(1)))
			became = became.Or(server.As("servers"))
		}
		t.becameAll(one.get("name"), importer.Same, became, "servers of the proxy")
		t.becameAll(one.get("weight"), importer.Close, became, "the weight of each of its servers; with another number of servers the shares differ")
	}
	became := importer.Field{}
	for _, one := range s.get("loadBalancer", "servers").list {
		if address := one.get("address").text(); address != "" {
			server := importer.NewObject().Set("address", address).Flow()
			servers = append(servers, server)
			t.becameAll(one.get("address"), importer.Same, server.As("servers"), "a server")
		}
	}
	if port := s.get("loadBalancer", "server", "port"); port.is() {
		for _, at := range t.servers[kind+"/"+strings.ToLower(name)] {
			host, _, err := net.SplitHostPort(at)
			if err == nil {
				server := importer.NewObject().Set("address", net.JoinHostPort(host, port.text())).Flow()
				servers, became = append(servers, server), became.Or(server.As("servers"))
			}
		}
		t.becameAll(port, importer.Same, became, "the port of the server")
	}
	return servers
}
