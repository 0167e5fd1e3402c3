package caddy

import (
	"strings"

	"headgate/internal/migrate/importer"
)

// reverseProxy makes the handler of reverse_proxy.
func (b *block) reverseProxy(d *directive, words []string) *value {
	h := handler(d, "reverse_proxy")
	upstreams := list(d)
	h.set("upstreams", upstreams)
	tls := false
	to := func(by *directive, words []string) {
		for _, w := range words {
			dial, secure, h2c := dialOf(w)
			tls = tls || secure
			if h2c {
				h.at(by, "transport").set("versions", texts(by, []string{"h2c", "2"}))
			}
			upstreams.list = append(upstreams.list, object(by).put(by, "dial", dial))
		}
	}
	to(d, words)
	for _, o := range d.block {
		if o.name() == "to" {
			to(o, expanded(o.args()))
			continue
		}
		b.proxyOption(h, o)
	}
	if tls {
		h.at(d, "transport", "tls")
	}
	return h
}

// dialOf returns the address of an upstream as Caddy dials it: with a port.
func dialOf(upstream string) (dial string, tls, h2c bool) {
	scheme, rest, ok := strings.Cut(upstream, "://")
	if !ok {
		if path, unix := strings.CutPrefix(upstream, "unix+h2c/"); unix {
			return "unix/" + path, false, true
		}
		if strings.HasPrefix(upstream, "unix/") {
			return upstream, false, false
		}
		scheme, rest = "", upstream
	}
	rest = strings.TrimSuffix(rest, "/")
	host := rest[strings.LastIndexByte(rest, ']')+1:]
	if i := strings.LastIndexByte(host, '}'); i >= 0 {
		host = host[i:]
	}
	if !strings.Contains(host, ":") {
		rest += map[string]string{"https": ":443"}[scheme]
		if scheme != "https" {
			rest += ":80"
		}
	}
	return rest, scheme == "https", scheme == "h2c"
}

// proxyOption adds an option of reverse_proxy.
func (b *block) proxyOption(h *value, o *directive) {
	words := expanded(o.args())
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	switch name := o.name(); name {
	case "lb_policy":
		p := h.at(o, "load_balancing", "selection_policy").put(o, "policy", first)
		field := map[string]string{"header": "field", "query": "key", "cookie": "name"}[first]
		if first == "weighted_round_robin" {
			p.set("weights", texts(o, words[1:]))
		} else if len(words) > 1 && field != "" {
			p.put(o, field, words[1])
		}
		b.a.t.inside(o, importer.Impossible, "the fallback of the policy is headgate's own")
	case "lb_try_duration", "lb_retries", "lb_try_interval", "lb_retry_match":
		h.at(o, "load_balancing").put(o, map[string]string{"lb_try_duration": "try_duration", "lb_retries": "retries", "lb_try_interval": "try_interval", "lb_retry_match": "retry_match"}[name], strings.Join(words, " ")+" ")
		b.a.t.inside(o, importer.Impossible, "retry of the route says what is sent again")
	case "health_uri", "health_path", "health_port", "health_interval", "health_timeout", "health_status", "health_body", "health_passes", "health_fails", "health_method", "health_upstream", "health_request_body", "health_follow_redirects", "health_headers":
		field := strings.TrimPrefix(name, "health_")
		switch field {
		case "status":
			field, first = "expect_status", strings.TrimSuffix(first, "xx")
		case "body":
			field = "expect_body"
		case "headers", "follow_redirects":
			first = "true"
			b.a.t.inside(o, importer.Impossible, "checks have the headers of headgate")
		}
		h.at(o, "health_checks", "active").put(o, field, first)
	case "fail_duration", "max_fails", "unhealthy_status", "unhealthy_latency", "unhealthy_request_count":
		h.at(o, "health_checks", "passive").put(o, name, strings.Join(words, " "))
	case "header_up", "header_down":
		direction := map[string]string{"header_up": "request", "header_down": "response"}[name]
		if len(words) > 0 {
			headerOp(h.at(o, "headers", direction), o, words)
			h.get("headers", "request").drop("deferred")
		}
	case "method", "rewrite":
		h.at(o, "rewrite").put(o, map[string]string{"method": "method", "rewrite": "uri"}[name], first)
	case "transport":
		b.transport(h, o)
	case "handle_response", "replace_status", "copy_response", "copy_response_headers":
		h.put(o, "handle_response", "true")
		b.a.t.inside(o, importer.Impossible, "a part of "+name)
	case "dynamic":
		h.put(o, "dynamic_upstreams", strings.Join(words, " "))
		b.a.t.inside(o, importer.Impossible, "a part of dynamic")
	case "flush_interval", "trusted_proxies", "buffer_requests", "buffer_responses", "max_buffer_size", "request_buffers", "response_buffers", "stream_timeout", "stream_close_delay", "verbose_logs":
		h.put(o, name, strings.Join(append(words, ""), " "))
	default:
		if strings.HasPrefix(name, "@") { // of handle_response
			b.a.t.sayAll(o, importer.Impossible, "headgate has no handle_response")
			return
		}
		b.a.t.leaveOut(o, "headgate does not know this option of reverse_proxy")
	}
}

// transport adds how upstreams are reached.
func (b *block) transport(h *value, d *directive) {
	to := h.at(d, "transport").put(d, "protocol", d.arg(0))
	for _, o := range d.block {
		words := expanded(o.args())
		switch name := o.name(); name {
		case "tls":
			to.at(o, "tls")
		case "tls_insecure_skip_verify":
			to.at(o, "tls").put(o, "insecure_skip_verify", "true")
		case "tls_server_name":
			to.at(o, "tls").put(o, "server_name", strings.Join(words, ""))
		case "tls_trusted_ca_certs":
			to.at(o, "tls").set("root_ca_pem_files", texts(o, words))
		case "tls_trust_pool":
			pool := to.at(o, "tls", "ca").put(o, "provider", strings.Join(words[:min(1, len(words))], ""))
			if len(words) > 1 {
				pool.set("pem_files", texts(o, words[1:]))
			}
			for _, c := range o.block {
				pool.set("pem_files", texts(c, c.args()))
			}
		case "tls_client_auth":
			client := to.at(o, "tls")
			if len(words) == 2 {
				client.put(o, "client_certificate_file", words[0]).put(o, "client_certificate_key_file", words[1])
			} else {
				client.put(o, "client_certificate_automate", strings.Join(words, ""))
			}
		case "versions":
			to.set("versions", texts(o, words))
		default:
			to.put(o, name, strings.Join(append(words, ""), " "))
			b.a.t.inside(o, importer.Ignored, "connections are headgate's own")
		}
	}
}

// forwardAuth makes what forward_auth means: reverse_proxy that sends GET, and continues
// if the response is 2xx.
func (b *block) forwardAuth(d *directive) []entry {
	e, words, ok := b.matched(d)
	if !ok {
		return nil
	}
	inner := &directive{Origin: d.Origin, of: d, words: []string{"reverse_proxy"}}
	copied, rewrite := list(d), object(d).put(d, "method", "GET")
	for _, c := range d.block {
		switch c.name() {
		case "uri":
			rewrite.put(c, "uri", expand(c.arg(0)))
		case "copy_headers":
			for _, name := range append(append([]string{}, c.args()...), joined(c.block)...) {
				from, to, renamed := strings.Cut(strings.ReplaceAll(name, " ", ""), ">")
				if !renamed {
					to = from
				}
				one := text(c, "{http.reverse_proxy.header."+canonical(from)+"}")
				one.path = "copy_headers." + canonical(to)
				copied.list = append(copied.list, object(c).set(canonical(to), one))
			}
			for _, in := range c.block {
				in.Skip()
			}
		default:
			inner.block = append(inner.block, c)
		}
	}
	h := b.reverseProxy(inner, expanded(words))
	h.set("rewrite", rewrite)
	h.set("handle_response", list(d, object(d).set("routes", copied)))
	e.handlers = []*value{h}
	return []entry{e}
}
