package traefik

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"headgate/internal/migrate/importer"
)

// service fills in the servers of a route.
func (t *translator) service(r *router, name string, depth int) {
	name, provider, _ := strings.Cut(name, "@")
	n := t.root.get("http", "services", name)
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

// unserved makes a route without servers answer 503, so that nobody else takes its
// requests.
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
		s, ok := serverOf(text)
		if !ok {
			t.sayAll(one, importer.Impossible, "not the URL of a server")
			t.Check("service %s: %q is not the URL of a server", name, text)
			continue
		}
		if w := one.get("weight"); w.is() {
			s.Set("weight", w.number(1))
			t.sayAll(w, importer.Same, "weight")
		}
		t.sayAll(one.get("preservePath"), importer.Close, "the path of the URL stands before the request's path")
		servers = append(servers, t.secured(s, n))
		t.sayAll(one.get("url"), importer.Same, "a server")
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
		if s, ok := serverOf(scheme + "://" + net.JoinHostPort(host, exposed)); ok {
			servers = append(servers, t.secured(s, n))
		}
	}
	t.sayAll(n.get("server", "port"), importer.Same, "the port of the server")
	t.sayAll(n.get("server", "scheme"), importer.Same, "the scheme of the server")
	t.sayAll(n.get("server", "url"), importer.Same, "a server")
	if len(servers) == 0 {
		t.unserved(r, "the service "+name+" has no servers")
		return
	}
	r.route.Set("servers", servers)
	t.balancing(r, n)
	t.sayAll(service.get("loadBalancer", "responseForwarding"), importer.Ignored, "responses are passed on as they come")
}

// balancing reads how the load of a service is shared, and how its servers are watched.
func (t *translator) balancing(r *router, n *node) {
	if pass := n.get("passHostHeader"); pass.is() && !pass.on() && pass.text() != "" {
		r.host = "upstream"
		t.sayAll(pass, importer.Same, "host_header: upstream of the proxy")
	} else {
		t.sayAll(pass, importer.Same, "the Host is the client's")
	}
	t.sayAll(n.get("serversTransport"), importer.Close, "tls of the servers")
	switch strategy := n.get("strategy").text(); strings.ToLower(strategy) {
	case "", "wrr":
	case "p2c":
		r.route.Set("load_balancing", "p2c_ewma")
	case "hrw":
		r.route.Set("load_balancing", "client_ip_hash")
	case "leasttime":
		r.route.Set("load_balancing", "p2c_ewma")
	}
	t.sayAll(n.get("strategy"), importer.Close, "load_balancing")
	if c := n.get("sticky", "cookie"); c.is() || n.get("sticky").is() {
		sticky := importer.NewObject().Set("enabled", true)
		if name := c.get("name").text(); name != "" {
			sticky.Set("name", name)
		}
		if site := strings.ToLower(c.get("sameSite").text()); site == "lax" || site == "strict" || site == "none" {
			sticky.Set("same_site", site)
		}
		r.route.Set("sticky_cookie", sticky.Flow())
		t.sayAll(n.get("sticky"), importer.Same, "sticky_cookie; HttpOnly always, Secure on TLS")
	}
	if p := n.get("passiveHealthCheck"); p.is() {
		e := importer.NewObject().Set("failures", max(p.get("maxFailedAttempts").number(1), 1))
		if text := p.get("failureWindow").text(); text != "" {
			e.Set("time", duration(text))
		}
		r.route.Set("ejection", e.Flow())
		t.sayAll(p, importer.Close, "ejection: failures in a row are counted")
	}
	h := n.get("healthCheck")
	if !h.is() {
		return
	}
	check := importer.NewObject().Set("path", h.get("path").text())
	for from, to := range map[string]string{"interval": "interval", "timeout": "timeout", "unhealthyInterval": "unhealthy_interval"} {
		if v := h.get(from); v.is() {
			check.Set(to, duration(v.text()))
			t.sayAll(v, importer.Same, to)
		}
	}
	if method := strings.ToUpper(h.get("method").text()); method == "HEAD" || method == "OPTIONS" {
		check.Set("method", method)
	}
	if status := h.get("status").text(); status != "" {
		check.Set("status", status)
	}
	if host := h.get("hostname").text(); host != "" {
		check.Set("host", host)
	}
	for _, name := range []string{"path", "method", "status", "hostname"} {
		t.sayAll(h.get(name), importer.Same, "health_check")
	}
	t.sayAll(h, importer.Close, "the check goes to the server's own port, without headers of its own")
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
func serverOf(text string) (importer.Object, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c" {
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

// secured gives a server what its transport says of TLS.
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
	for _, field := range []string{"insecureSkipVerify", "serverName", "rootCAs"} {
		t.sayAll(transport.get(field), importer.Same, "tls of the servers")
	}
	if tls.Len() > 0 {
		s.Set("tls", tls.Flow())
	}
	return s.Flow()
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
		t.sayAll(one.get("name"), importer.Same, "servers of the route")
		t.sayAll(one.get("weight"), importer.Close, "the weight of each of its servers; with another number of servers the shares differ")
	}
	if n.get("sticky").is() {
		r.route.Set("sticky_cookie", importer.NewObject().Set("enabled", true).Flow())
		t.sayAll(n.get("sticky"), importer.Close, "sticky_cookie keeps to a server, not to a service")
	}
	if len(servers) == 0 {
		t.unserved(r, "none of its services has servers")
		return
	}
	r.route.Set("servers", servers)
}

func (t *translator) mirroring(r *router, n *node, depth int) {
	t.service(r, n.get("service").text(), depth+1)
	t.sayAll(n.get("service"), importer.Same, "servers of the route")
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
		t.sayAll(one, importer.Same, "mirror")
	}
	t.sayAll(n.get("maxBodySize"), importer.Close, "mirror.max_body is 64KiB unless it is set")
}

func (t *translator) failover(r *router, n *node, depth int) {
	t.service(r, n.get("service").text(), depth+1)
	part := &router{name: r.name, n: r.n, when: r.when, route: importer.NewObject()}
	t.service(part, n.get("fallback").text(), depth+1)
	for _, s := range part.route.Objects("servers") {
		r.route.Append("servers", s.Set("backup", true))
	}
	t.sayAll(n, importer.Same, "servers, and those of the fallback as backup")
}
