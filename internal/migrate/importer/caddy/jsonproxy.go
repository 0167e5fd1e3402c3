package caddy

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// proxy translates a handler reverse_proxy: servers, or an auth server.
func (w *walker) proxy(h *value, c rules.Condition, view []change) {
	if h.get("rewrite", "method").text == "GET" && len(h.get("handle_response").list) > 0 {
		w.forwardAuth(h, c, view)
		return
	}
	if p := h.get("transport", "protocol"); p.is() && p.text != "http" {
		w.lost(h, "headgate speaks to servers by HTTP, not by "+p.text)
		w.routable(h, c, func(o *result) { o.answer(fixedStatus(502)) })
		return
	}
	o := importer.NewObject()
	tls, scheme := w.t.transportOf(h.get("transport"))
	var servers []importer.Object
	for _, u := range h.get("upstreams").list {
		dial := u.get("dial")
		url, ok := serverURL(scheme + "://" + dial.text)
		if path, unix := strings.CutPrefix(dial.text, "unix/"); unix {
			url, ok = "unix:"+path, strings.HasPrefix(path, "/")
		}
		if !ok {
			w.t.sayValue(u, importer.Impossible, "not an address of a server that can be translated")
			w.t.Check("%s:%d: %q is not an address of a server that can be translated", u.File, u.Line, dial.text)
			continue
		}
		one := importer.NewObject().Set("url", url)
		if tls.Len() > 0 {
			one.Set("tls", tls)
		}
		if n := u.get("max_requests").number(); n > 0 {
			one.Set("max_requests", n)
			w.t.Became(u.get("max_requests"), importer.Same, one.Field("max_requests"), "max_requests")
		}
		servers = append(servers, one.Flow())
		w.t.Became(dial, importer.Same, one.Field("url"), "servers")
	}
	if len(servers) == 0 {
		w.lost(h, "it has no servers that can be named")
		w.routable(h, c, func(o *result) { o.answer(fixedStatus(502)) })
		return
	}
	o.Set("servers", servers)
	w.balance(h, o)
	w.checks(h.get("health_checks"), o)
	requests, host := w.t.headerOps(h.get("headers", "request"), "request", len(view) > 0)
	responses, _ := w.t.headerOps(h.get("headers", "response"), "response", len(view) > 0)
	w.t.Became(h.get("flush_interval"), importer.Same, importer.ByItself(), "responses are passed on as they come")
	w.t.trusted(h.get("trusted_proxies"), o)
	for _, name := range []string{"request_buffers", "response_buffers", "buffer_requests", "buffer_responses", "max_buffer_size", "stream_timeout", "stream_close_delay", "verbose_logs"} {
		w.t.sayValue(h.get(name), importer.Ignored, "bodies are passed on as they come")
	}
	for _, name := range []string{"handle_response", "rewrite", "dynamic_upstreams", "circuit_breaker"} {
		if v := h.get(name); v.is() {
			w.t.sayValue(v, importer.Impossible, "headgate has no %s", name)
			w.t.Check("%s:%d: %s of reverse_proxy was left out", v.File, v.Line, name)
		}
	}
	w.routable(h, c, func(out *result) {
		out.o.Merge(o)
		out.requests = append(out.requests, requests...)
		out.responses = append(out.responses, responses...)
		if host != "" {
			out.host = host
		}
		out.over = true
	})
	w.t.Became(h.get("handler"), importer.Same, o.Field("servers"), "servers")
}

// trusted translates the networks whose X-Forwarded-For is trusted.
func (t *translator) trusted(v *value, o importer.Object) {
	var networks []string
	for _, text := range append(v.get("ranges").texts(), v.texts()...) {
		for _, word := range strings.Fields(text) {
			if word == "private_ranges" {
				networks = append(networks, privateRanges...)
			} else if word != "static" {
				networks = append(networks, masked(word))
			}
		}
	}
	switch source := v.get("source").text; {
	case !v.is():
	case source != "" && source != "static", len(networks) == 0, slices.ContainsFunc(networks, func(n string) bool { return !isNetwork(n) }):
		t.lost(v, "write client_ip: {trusted: […]}, or {cdn: […]}")
	default:
		o.Set("client_ip", importer.NewObject().Set("trusted", networks).Flow())
		t.Became(v, importer.Same, o.Field("client_ip"), "client_ip.trusted")
	}
}

// masked writes a network without the bits of a host.
func masked(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return text
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	_, err2 := netip.ParseAddr(text)
	return err == nil || err2 == nil
}

// transportOf says how servers are reached.
func (t *translator) transportOf(v *value) (tls importer.Object, scheme string) {
	tls, scheme = importer.NewObject(), "http"
	if c := v.get("tls"); c.is() || c.object {
		scheme = "https"
		if skip := c.get("insecure_skip_verify"); skip.text == "true" {
			tls.Set("insecure_skip_verify", true)
			t.Became(skip, importer.Same, tls.Field("insecure_skip_verify"), "tls.insecure_skip_verify")
		}
		if name := c.get("server_name"); name.is() {
			tls.Set("server_name", name.text)
			t.Became(name, importer.Same, tls.Field("server_name"), "tls.server_name")
		}
		for _, files := range []*value{c.get("root_ca_pem_files"), c.get("ca", "pem_files")} {
			if all := files.texts(); len(all) > 0 {
				tls.Set("ca_file", all[0])
				t.Became(files, importer.Same, tls.Field("ca_file"), "tls.ca_file")
			}
		}
		if cert, key := c.get("client_certificate_file"), c.get("client_certificate_key_file"); cert.is() && key.is() {
			tls.Set("client_cert_file", cert.text).Set("client_key_file", key.text)
			t.Became(cert, importer.Same, tls.Field("client_cert_file"), "tls.client_cert_file")
			t.Became(key, importer.Same, tls.Field("client_key_file"), "tls.client_key_file")
		}
		t.sayValue(c, importer.Ignored, "the scheme of the server says that TLS is spoken; other settings are left out")
	}
	for _, version := range v.get("versions").texts() {
		if version == "h2c" {
			scheme = "h2c"
		}
	}
	t.sayValue(v, importer.Ignored, "the scheme of the server says it, or it is on by itself")
	return tls, scheme
}

// policies are those of load balancing, by their names in Caddy.
var policies = map[string]string{"round_robin": "round_robin", "least_conn": "least_connections", "random": "random", "first": "first",
	"ip_hash": "client_ip_hash", "client_ip_hash": "client_ip_hash", "random_choose": "p2c_ewma", "uri_hash": "hash:path"}

// balance says how requests are shared.
func (w *walker) balance(h *value, o importer.Object) {
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
			note = "otherwise: clients are spread otherwise: each may get another server than before, once"
		}
		verdict := importer.Same
		if note != "" {
			verdict = importer.Close
		}
		w.t.Became(p, verdict, o.Field("load_balancing"), "%s", strings.TrimSpace("load_balancing "+note))
	case name == "header":
		o.Set("load_balancing", "hash:header:"+p.get("field").text)
		w.t.Became(p, importer.Close, o.Field("load_balancing"), "load_balancing: values are spread otherwise than before, once")
	case name == "cookie":
		cookie := importer.NewObject()
		if n := p.get("name").text; n != "" {
			cookie.Set("name", n)
		}
		o.Set("sticky_cookie", cookie.Set("enabled", true).Flow())
		w.t.Became(p, importer.Close, o.Field("sticky_cookie"), "sticky_cookie: it has another value and SameSite=Lax")
	case name == "weighted_round_robin":
		weights := p.get("weights").list
		for i, one := range o.Objects("servers") {
			if i < len(weights) {
				one.Set("weight", weights[i].number())
			}
		}
		w.t.Became(p, importer.Same, o.Field("servers"), "weight of the servers")
	default:
		w.t.sayValue(p, importer.Impossible, "requests are shared in turn, by load, address, path, header or cookie")
	}
	for _, name := range []string{"try_duration", "retries", "try_interval", "retry_match"} {
		w.t.Became(lb.get(name), importer.Close, importer.ByItself(), "what is idempotent or was not sent yet goes to another server: retry of the route")
	}
}

// checks translates health checks.
func (w *walker) checks(v *value, o importer.Object) {
	t := w.t
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
			t.Became(one, importer.Same, check.Field(f.field), "health_check.%s", f.field)
		}
		t.sayValue(a, importer.Impossible, "checks go to the server's own port, with the headers of headgate")
		o.Set("health_check", check)
	}
	t.Became(v.get("passive"), importer.Close, importer.ByItself(), "servers that fail are ejected by default: ejection of the route")
}

// forwardAuth translates what the directive forward_auth was adapted to: the auth
// server gets a GET, and its response 2xx allows the request.
func (w *walker) forwardAuth(h *value, c rules.Condition, view []change) {
	t := w.t
	var dial string
	if all := h.get("upstreams").list; len(all) == 1 {
		dial = all[0].get("dial").text
	}
	_, scheme := t.transportOf(h.get("transport"))
	url, ok := serverURL(scheme + "://" + dial)
	uri, missing := words{changed: len(view) > 0}.write(h.get("rewrite", "uri").text)
	if !ok || missing != "" || strings.Contains(strings.ReplaceAll(dial, "${", ""), "{") {
		w.routable(h, c, func(o *result) { o.answer(fixedStatus(403)) })
		t.sayValue(h, importer.Impossible, "the URL of the auth server is unknown: no request is allowed; write forward_auth: {url: …}")
		t.Check("%s:%d: the URL of the auth server is unknown, and no request is allowed: write forward_auth", h.File, h.Line)
		return
	}
	auth := importer.NewObject().Set("url", url+uri)
	var names []string
	copies := h.get("handle_response")
	copies.leaves(func(leaf *value) {
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
		t.Became(copies, importer.Same, auth.Field("response_headers"), "forward_auth.response_headers")
	}
	t.Became(h.get("rewrite", "uri"), importer.Same, auth.Field("url"), "forward_auth.url")
	set := importer.NewObject().Set("forward_auth", auth)
	t.AuthServer(url + uri)
	w.routable(h, c, func(o *result) { o.o.Merge(set) })
	t.Became(h, importer.Close, set.Field("forward_auth"), "forward_auth sends GET with the URL in X-Forwarded-*")
}

func contains(all []string, name string) bool {
	for _, s := range all {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// serverURL makes the URL of a server from an upstream of Caddy.
func serverURL(text string) (string, bool) {
	if path, ok := strings.CutPrefix(text, "unix/"); ok {
		return "unix:" + path, strings.HasPrefix(path, "/")
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "http", text
	}
	if scheme != "http" && scheme != "https" && scheme != "h2c" || strings.ContainsAny(strings.ReplaceAll(rest, "${", ""), "/{ ") {
		return "", false
	}
	if strings.Contains(rest, "${") { // of the environment
		return scheme + "://" + rest, true
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = rest, map[string]string{"http": "80", "h2c": "80", "https": "443"}[scheme]
	}
	if host == "" {
		host = "localhost"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", false
	}
	return scheme + "://" + net.JoinHostPort(strings.Trim(host, "[]"), port), true
}
