package traefik

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// service fills in the servers of a route.
func (t *translator) service(r *router, name string, depth int) {
	name, provider, _ := strings.Cut(name, "@")
	n := t.root.get("http", "services", name)
	for _, middleware := range n.get("middlewares").texts() {
		t.middleware(r, middleware, 0)
	}
	t.sayMiddlewares(n.get("middlewares"))
	switch {
	case provider == "internal":
		t.unserved(r, "the service "+name+"@internal is part of Traefik itself")
	case depth > maxDepth:
		t.unserved(r, "services lead in a circle")
	case n.get("loadBalancer").is() || len(t.servers["http/"+strings.ToLower(name)]) > 0:
		t.loadBalancer(r, name, n, n.get("loadBalancer"))
	case n.get("weighted").is():
		t.weighted(r, n.get("weighted"), depth)
	case n.get("mirroring").is():
		t.mirroring(r, n.get("mirroring"), depth)
	case n.get("failover").is():
		t.failover(r, n.get("failover"), depth)
	case n.get("highestRandomWeight").is():
		t.weighted(r, n.get("highestRandomWeight"), depth)
		r.route.Set("load_balancing", "client_ip_hash")
		t.Check("service %s chooses by the client's address; its weights were kept", name)
	default:
		t.unserved(r, fmt.Sprintf("the service %q is not in the files that were given", name))
	}
}

// unserved makes a route without servers answer 503, so that no other route gets
// its requests.
func (t *translator) unserved(r *router, why string) {
	r.route.Remove("strip_prefix")
	r.route.Set("fixed_response", importer.NewObject().Set("status", 503).Flow())
	t.Check("router %s: %s; the route answers 503 until it has servers", r.name, why)
}

func (t *translator) loadBalancer(r *router, name string, service, n *node) {
	port, scheme := n.get("server", "port").text(), n.get("server", "scheme").text()
	var servers []importer.Object
	for _, one := range n.get("servers").list {
		text := one.get("url").text()
		if text == "" {
			text = one.get("address").text()
		}
		s, ok := serverOf(text, one.get("preservePath").on())
		if !ok {
			t.sayAll(one, importer.Impossible, "not the URL of a server")
			t.Check("service %s: %q is not the URL of a server", name, text)
			continue
		}
		if w := one.get("weight"); w.is() {
			s.Set("weight", w.number(1))
			t.becameAll(w, importer.Same, s.Field("weight"), "weight")
		}
		t.becameAll(one.get("preservePath"), importer.Same, s.As("servers"), "the path of the URL is added in front of the request's path")
		servers = append(servers, t.secured(s, n))
		t.becameAll(one.get("url"), importer.Same, s.As("servers"), "a server")
	}
	for _, at := range t.servers["http/"+strings.ToLower(name)] {
		if len(n.get("servers").list) > 0 {
			break
		}
		host, exposed, _ := strings.Cut(at, ":")
		if port != "" {
			exposed = port
		}
		if scheme == "" {
			scheme = "http"
		}
		if s, ok := serverOf(scheme+"://"+net.JoinHostPort(host, exposed), false); ok {
			servers = append(servers, t.secured(s, n))
		}
	}
	became := importer.Field{}
	for _, s := range servers {
		became = became.Or(s.As("servers"))
	}
	t.becameAll(n.get("server", "port"), importer.Same, became, "the port of the server")
	t.becameAll(n.get("server", "scheme"), importer.Same, became, "the scheme of the server")
	t.becameAll(n.get("server", "url"), importer.Same, became, "a server")
	if len(servers) == 0 {
		t.unserved(r, "the service "+name+" has no servers")
		t.sayAll(n, importer.Impossible, "the service has no server with a valid address; its route answers 503")
		return
	}
	t.forwardingTimeouts(r, n)
	r.route.Set("servers", servers)
	t.balancing(r, n)
	t.sayAll(service.get("loadBalancer", "responseForwarding"), importer.Ignored, "responses are passed on as they come")
}

// balancing reads how the load of a service is shared, and how its servers are watched.
func (t *translator) balancing(r *router, n *node) {
	if pass := n.get("passHostHeader"); pass.is() && !pass.on() && pass.text() != "" {
		r.host = "upstream"
		t.becameAll(pass, importer.Same, importer.Value("host_header", "upstream"), "host_header: upstream of the proxy")
	} else {
		t.becameAll(pass, importer.Same, importer.ByItself(), "the Host is the client's")
	}
	became := importer.ByItself() // in turn, by weight
	switch strategy := n.get("strategy").text(); strings.ToLower(strategy) {
	case "", "wrr":
	case "p2c":
		r.route.Set("load_balancing", "p2c_ewma")
	case "hrw":
		r.route.Set("load_balancing", "client_ip_hash")
	case "leasttime":
		r.route.Set("load_balancing", "p2c_ewma")
	}
	if r.route.Has("load_balancing") {
		became = r.route.Field("load_balancing")
	}
	t.becameAll(n.get("strategy"), importer.Close, became, "load_balancing")
	t.stickyCookie(r, n)
	t.healthChecks(r, n)
}

// stickyCookie translates the affinity of a service.
func (t *translator) stickyCookie(r *router, n *node) {
	c := n.get("sticky", "cookie")
	if !c.is() && !n.get("sticky").is() {
		return
	}
	sticky := importer.NewObject().Set("enabled", true)
	if name := c.get("name").text(); name != "" {
		sticky.Set("name", name)
	}
	if site := strings.ToLower(c.get("sameSite").text()); site == "lax" || site == "strict" || site == "none" {
		sticky.Set("same_site", site)
	}
	if age := c.get("maxAge").number(0); age > 0 {
		t.becameAll(c.get("maxAge"), importer.Same, sticky.Set("max_age", strconv.Itoa(age)+"s").Field("max_age"), "sticky_cookie.max_age")
	}
	r.route.Set("sticky_cookie", sticky.Flow())
	t.becameAll(c.get("name"), importer.Same, sticky.Field("name"), "sticky_cookie.name")
	t.becameAll(c.get("sameSite"), importer.Same, sticky.Field("same_site"), "sticky_cookie.same_site")
	t.becameAll(n.get("sticky"), importer.Close, r.route.Field("sticky_cookie"), "sticky_cookie; HttpOnly always, Secure on TLS, for the path of the route")
}

// healthChecks translates the passive and the active health check of a service.
func (t *translator) healthChecks(r *router, n *node) {
	if p := n.get("passiveHealthCheck"); p.is() {
		e := importer.NewObject().Set("failures", max(p.get("maxFailedAttempts").number(1), 1))
		if text := p.get("failureWindow").text(); text != "" {
			e.Set("time", duration(text))
		}
		r.route.Set("ejection", e.Flow())
		t.becameAll(p, importer.Close, r.route.Field("ejection"), "ejection: failures in a row are counted")
	}
	h := n.get("healthCheck")
	if !h.is() {
		return
	}
	check := importer.NewObject().Set("path", h.get("path").text())
	for from, to := range map[string]string{"interval": "interval", "timeout": "timeout", "unhealthyInterval": "unhealthy_interval"} {
		if v := h.get(from); v.is() {
			t.becameAll(v, importer.Same, check.Set(to, duration(v.text())).Field(to), "health_check.%s", to)
		}
	}
	method := strings.ToUpper(h.get("method").text())
	if method == "HEAD" || method == "OPTIONS" {
		check.Set("method", method)
	}
	if status := h.get("status").text(); status != "" {
		check.Set("status", status)
	}
	if host := h.get("hostname").text(); host != "" {
		check.Set("host", host)
	}
	for from, to := range map[string]string{"path": "path", "status": "status", "hostname": "host"} {
		t.becameAll(h.get(from), importer.Same, check.Field(to), "health_check.%s", to)
	}
	became := check.Field("method")
	if method == "" || method == "GET" {
		became = importer.ByItself()
	}
	t.becameAll(h.get("method"), importer.Same, became, "health_check.method")
	t.becameAll(h, importer.Close, check.As("health_check"), "the check goes to the server's own port, without headers of its own")
	r.route.Set("health_check", check)
}

// duration writes a number of seconds as a duration; others are alike in both.
func duration(text string) string {
	if strings.Trim(text, "0123456789") == "" {
		return text + "s"
	}
	return text
}

// serverOf makes a server of a URL.
// Traefik sends nothing of the URL's path unless it is to be preserved.
func serverOf(text string, preservePath bool) (importer.Object, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c" {
		return importer.Object{}, false
	}
	if u.RawQuery = ""; !preservePath {
		u.Path, u.RawPath = "", ""
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
		return importer.Object{}, false
	}
	if u.Port() == "" {
		port := "80"
		if u.Scheme == "https" {
			port = "443"
		}
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return importer.NewObject().Set("url", u.String()), true
}

// secured adds the TLS settings of its transport to a server.
func (t *translator) secured(s importer.Object, n *node) importer.Object {
	name, _, _ := strings.Cut(n.get("serversTransport").text(), "@")
	transport := t.root.get("http", "serversTransports", name)
	if name == "" {
		transport = t.root.get("serversTransport")
	}
	tls := importer.NewObject()
	if transport.get("insecureSkipVerify").on() {
		tls.Set("insecure_skip_verify", true)
	}
	if name := transport.get("serverName").text(); name != "" {
		tls.Set("server_name", name)
	}
	if list := transport.get("rootCAs").texts(); len(list) > 0 {
		tls.Set("ca_file", list[0])
	}
	switch {
	case tls.Len() > 0 && strings.HasPrefix(s.Text("url"), "https:"):
		s.Set("tls", tls.Flow())
	case tls.Len() > 0:
		for _, from := range []string{"insecureSkipVerify", "serverName", "rootCAs"} {
			t.sayAll(transport.get(from), importer.Ignored, "a server without https has no certificate")
		}
	}
	for from, to := range map[string]string{"insecureSkipVerify": "insecure_skip_verify", "serverName": "server_name", "rootCAs": "ca_file"} {
		became := tls.Field(to)
		if from == "insecureSkipVerify" && !transport.get(from).on() {
			became = importer.ByItself()
		}
		t.becameAll(transport.get(from), importer.Same, became, "tls of the servers")
	}
	if text := n.get("serversTransport"); transport.is() {
		t.becameAll(text, importer.Close, through(transport), "tls of the servers")
	} else {
		t.sayAll(text, importer.Impossible, "it is not in the files that were given")
	}
	return s.Flow()
}

// forwardingTimeouts reads how long servers are waited for.
func (t *translator) forwardingTimeouts(r *router, n *node) {
	name, _, _ := strings.Cut(n.get("serversTransport").text(), "@")
	transport := t.root.get("http", "serversTransports", name)
	if name == "" {
		transport = t.root.get("serversTransport")
	}
	waits := transport.get("forwardingTimeouts")
	if v := waits.get("dialTimeout"); v.text() != "" {
		r.route.Set("timeouts", importer.NewObject().Set("connect", duration(v.text())).Flow())
		t.becameAll(v, importer.Same, r.route.Field("timeouts"), "timeouts.connect")
	}
	if v := waits.get("responseHeaderTimeout"); v.text() != "" {
		r.route.Set("request_timeout", duration(v.text()))
		t.becameAll(v, importer.Same, r.route.Field("request_timeout"), "request_timeout")
	}
}

// weighted puts the servers of several services into one route: each server has the
// weight of its service.
func (t *translator) weighted(r *router, n *node, depth int) {
	var servers []importer.Object
	for _, one := range n.get("services").list {
		part := &router{name: r.name, n: r.n, when: r.when, route: importer.NewObject()}
		t.service(part, one.get("name").text(), depth+1)
		for _, s := range part.route.Objects("servers") {
			servers = append(servers, s.Set("weight", one.get("weight").number(1)))
		}
		became := importer.Field{}
		for _, s := range part.route.Objects("servers") {
			became = became.Or(s.As("servers"))
		}
		t.becameAll(one.get("name"), importer.Same, became, "servers of the route")
		t.becameAll(one.get("weight"), importer.Close, became, "the weight of each of its servers; with another number of servers the shares differ")
	}
	if n.get("sticky").is() {
		r.route.Set("sticky_cookie", importer.NewObject().Set("enabled", true).Flow())
		t.becameAll(n.get("sticky"), importer.Close, r.route.Field("sticky_cookie"), "sticky_cookie keeps to a server, not to a service")
	}
	if len(servers) == 0 {
		t.unserved(r, "none of its services has servers")
		return
	}
	r.route.Set("servers", servers)
}

func (t *translator) mirroring(r *router, n *node, depth int) {
	t.service(r, n.get("service").text(), depth+1)
	t.becameAll(n.get("service"), importer.Same, served(r.route), "servers of the route")
	for i, one := range n.get("mirrors").list {
		part := &router{name: r.name, n: r.n, when: r.when, route: importer.NewObject()}
		t.service(part, one.get("name").text(), depth+1)
		servers := part.route.Objects("servers")
		if i > 0 || len(servers) == 0 {
			t.sayAll(one, importer.Impossible, "a route has one mirror")
			t.Check("router %s: the mirror %s was left out", r.name, one.get("name").text())
			continue
		}
		r.route.Set("mirror", importer.NewObject().Set("servers", servers).Set("percent", one.get("percent").number(100)))
		t.becameAll(one, importer.Same, r.route.Field("mirror"), "mirror")
	}
	t.sayAll(n.get("maxBodySize"), importer.Impossible, "mirror.max_body is 64KiB unless it is set")
}

func (t *translator) failover(r *router, n *node, depth int) {
	t.service(r, n.get("service").text(), depth+1)
	part := &router{name: r.name, n: r.n, when: r.when, route: importer.NewObject()}
	t.service(part, n.get("fallback").text(), depth+1)
	for _, s := range part.route.Objects("servers") {
		r.route.Append("servers", s.Set("backup", true))
	}
	t.becameAll(n, importer.Same, served(r.route), "servers, and those of the fallback as backup")
}

// served is what answers the requests of a route.
func served(route importer.Object) importer.Field {
	return route.Field("servers").Or(route.Field("fixed_response")).Or(route.Field("redirects"))
}
