package caddy

import (
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// proxy takes a handler reverse_proxy: servers, or an auth server.
func (s *server) proxy(h *value, c rules.Condition) {
	if h.get("rewrite", "method").text == "GET" && len(h.get("handle_response").list) > 0 {
		s.forwardAuth(h, c)
		return
	}
	o := importer.NewObject()
	tls, scheme := s.t.transportOf(h.get("transport"))
	var servers []importer.Object
	for _, u := range h.get("upstreams").list {
		dial := u.get("dial")
		url, ok := serverURL(scheme + "://" + dial.text)
		if path, unix := strings.CutPrefix(dial.text, "unix/"); unix {
			url, ok = "unix:"+path, strings.HasPrefix(path, "/")
		}
		if !ok || strings.Contains(dial.text, "{") {
			s.t.sayValue(u, importer.Impossible, "not an address of a server that can be taken over")
			s.t.Check("%s:%d: %q is not an address of a server that can be taken over", u.File, u.Line, dial.text)
			continue
		}
		one := importer.NewObject().Set("url", url)
		if tls.Len() > 0 {
			one.Set("tls", tls)
		}
		if n := u.get("max_requests").number(); n > 0 {
			one.Set("max_requests", n)
			s.t.sayValue(u.get("max_requests"), importer.Same, "max_requests")
		}
		servers = append(servers, one.Flow())
		s.t.sayValue(dial, importer.Same, "servers")
	}
	if len(servers) == 0 {
		s.lost(h, "it has no servers that can be named")
		s.routable(h, c, func(o *result) {
			o.o.Set("fixed_response", importer.NewObject().Set("status", 502).Flow())
			o.over = true
		})
		return
	}
	o.Set("servers", servers)
	s.balance(h, o)
	s.checks(h.get("health_checks"), o)
	requests, host := s.t.headerOps(h.get("headers", "request"), "request")
	responses, _ := s.t.headerOps(h.get("headers", "response"), "response")
	s.t.sayValue(h.get("flush_interval"), importer.Same, "responses are passed on as they come")
	s.t.sayValue(h.get("trusted_proxies"), importer.Close, "client_ip: {trusted: […]} of the proxy")
	for _, name := range []string{"request_buffers", "response_buffers", "buffer_requests", "buffer_responses", "max_buffer_size", "stream_timeout", "stream_close_delay", "verbose_logs"} {
		s.t.sayValue(h.get(name), importer.Ignored, "bodies are passed on as they come")
	}
	for _, name := range []string{"handle_response", "rewrite", "dynamic_upstreams", "circuit_breaker"} {
		if v := h.get(name); v.is() {
			s.t.sayValue(v, importer.Impossible, "headgate has no %s", name)
			s.t.Check("%s:%d: %s of reverse_proxy was left out", v.File, v.Line, name)
		}
	}
	s.routable(h, c, func(out *result) {
		out.o.Merge(o)
		out.requests = append(out.requests, requests...)
		out.responses = append(out.responses, responses...)
		if host != "" {
			out.host = host
		}
		out.over = true
	})
}

// transportOf says how servers are reached.
func (t *translator) transportOf(v *value) (tls importer.Object, scheme string) {
	tls, scheme = importer.NewObject(), "http"
	if c := v.get("tls"); c.is() || c.object {
		scheme = "https"
		if skip := c.get("insecure_skip_verify"); skip.text == "true" {
			tls.Set("insecure_skip_verify", true)
			t.sayValue(skip, importer.Same, "tls.insecure_skip_verify")
		}
		if name := c.get("server_name"); name.is() {
			tls.Set("server_name", name.text)
			t.sayValue(name, importer.Same, "tls.server_name")
		}
		for _, files := range []*value{c.get("root_ca_pem_files"), c.get("ca", "pem_files")} {
			if all := files.texts(); len(all) > 0 {
				tls.Set("ca_file", all[0])
				t.sayValue(files, importer.Same, "tls.ca_file")
			}
		}
		t.sayValue(c, importer.Close, "the scheme of the server says that TLS is spoken; other settings are left out")
	}
	for _, version := range v.get("versions").texts() {
		if version == "h2c" {
			scheme = "h2c"
		}
	}
	if p := v.get("protocol"); p.is() && p.text != "http" {
		t.sayValue(p, importer.Impossible, "servers are spoken to by HTTP only")
	}
	t.sayValue(v, importer.Ignored, "the scheme of the server says it, or it is on by itself")
	return tls, scheme
}

// policies are those of load balancing, by their names in Caddy.
var policies = map[string]string{"round_robin": "round_robin", "least_conn": "least_connections", "random": "random", "first": "first",
	"ip_hash": "client_ip_hash", "client_ip_hash": "client_ip_hash", "random_choose": "p2c_ewma", "uri_hash": "hash:path"}

// balance says how requests are shared.
func (s *server) balance(h *value, o importer.Object) {
	lb := h.get("load_balancing")
	p := lb.get("selection_policy")
	switch name := p.get("policy").text; {
	case name == "" && len(h.get("upstreams").list) > 1:
		o.Set("load_balancing", "random") // what Caddy does by itself
	case name == "":
	case policies[name] != "":
		o.Set("load_balancing", policies[name])
		note := ""
		if strings.HasSuffix(name, "hash") || name == "random_choose" {
			note = "clients are spread otherwise: each may get another server than before, once"
		}
		s.t.sayNote(p, note)
	case name == "header":
		o.Set("load_balancing", "hash:header:"+p.get("field").text)
		s.t.sayValue(p, importer.Close, "values are spread otherwise than before, once")
	case name == "cookie":
		cookie := importer.NewObject()
		if n := p.get("name").text; n != "" {
			cookie.Set("name", n)
		}
		o.Set("sticky_cookie", cookie.Set("enabled", true).Flow())
		s.t.sayValue(p, importer.Close, "the cookie has another value and SameSite=Lax")
	case name == "weighted_round_robin":
		weights := p.get("weights").list
		for i, one := range o.Objects("servers") {
			if i < len(weights) {
				one.Set("weight", weights[i].number())
			}
		}
		s.t.sayValue(p, importer.Same, "weight of the servers")
	default:
		s.t.sayValue(p, importer.Impossible, "requests are shared in turn, by load, address, path, header or cookie")
	}
	for _, name := range []string{"try_duration", "retries", "try_interval", "retry_match"} {
		s.t.sayValue(lb.get(name), importer.Close, "what is idempotent or was not sent yet goes to another server: retry of the route")
	}
}

// checks takes health checks.
func (s *server) checks(v *value, o importer.Object) {
	t := s.t
	a := v.get("active")
	if a.is() {
		check := importer.NewObject().Set("path", "/")
		for _, f := range []struct{ name, field, kind string }{
			{"path", "path", ""}, {"uri", "path", ""}, {"interval", "interval", "time"}, {"timeout", "timeout", "time"}, {"expect_body", "body", ""}, {"method", "method", ""},
			{"passes", "rise", "number"}, {"fails", "fall", "number"}, {"expect_status", "status", "status"},
		} {
			one := a.get(f.name)
			switch {
			case !one.is():
				continue
			case f.kind == "time":
				check.Set(f.field, one.duration())
			case f.kind == "number":
				check.Set(f.field, one.number())
			case f.kind == "status" && len(one.text) == 1:
				check.Set(f.field, one.text+"00-"+one.text+"99")
			default:
				check.Set(f.field, one.text)
			}
			t.sayValue(one, importer.Same, "health_check.%s", f.field)
		}
		t.sayValue(a, importer.Impossible, "checks go to the server's own port, with the headers of headgate")
		o.Set("health_check", check)
	}
	t.sayValue(v.get("passive"), importer.Close, "servers that fail are ejected by default: ejection of the route")
}

// forwardAuth takes what the directive forward_auth was adapted to: the auth server is
// asked by GET, and its answer 2xx lets in.
func (s *server) forwardAuth(h *value, c rules.Condition) {
	t := s.t
	var dial string
	if all := h.get("upstreams").list; len(all) == 1 {
		dial = all[0].get("dial").text
	}
	_, scheme := t.transportOf(h.get("transport"))
	url, ok := serverURL(scheme + "://" + dial)
	uri, clean := placeholders(h.get("rewrite", "uri").text)
	if !ok || !clean || strings.Contains(dial, "{") {
		s.refusal(h, c, importer.NewObject().Set("status", 403))
		t.sayValue(h, importer.Impossible, "the auth server cannot be named: nobody is let in; write forward_auth: {url: …}")
		t.Check("%s:%d: the auth server cannot be named, and nobody is let in: write forward_auth", h.File, h.Line)
		return
	}
	auth := importer.NewObject().Set("url", url+uri)
	var names []string
	h.get("handle_response").leaves(func(leaf *value) {
		inner, found := strings.CutPrefix(leaf.text, "{http.reverse_proxy.header.")
		if name := strings.TrimSuffix(inner, "}"); found && !contains(names, name) {
			names = append(names, name)
			if field := leaf.path[:strings.LastIndexByte(leaf.path, '.')]; !strings.HasSuffix(strings.ToLower(field), "."+strings.ToLower(name)) {
				t.Check("%s:%d: the header %s of the auth server keeps its name", leaf.File, leaf.Line, name)
			}
		}
	})
	if len(names) > 0 {
		auth.Set("response_headers", names)
	}
	s.routable(h, c, func(o *result) { o.o.Set("forward_auth", auth) })
	t.sayValue(h, importer.Close, "forward_auth asks by GET and tells the URL in X-Forwarded-*")
}

func contains(all []string, name string) bool {
	for _, s := range all {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}
