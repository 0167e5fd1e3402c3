package caddy

import (
	"net"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// reverseProxy makes the servers of a route.
func (t *translator) reverseProxy(d *directive, words []string, r importer.Object) {
	upstreams := append([]string{}, words...)
	tls := importer.NewObject()
	for _, o := range d.block {
		switch o.name() {
		case "to":
			upstreams = append(upstreams, o.args()...)
			t.Say(o, importer.Same, "servers")
		case "transport":
			t.transport(o, tls)
		default:
			t.proxyOption(d, o, r)
		}
	}
	var servers []importer.Object
	for _, text := range upstreams {
		url, ok := serverURL(text)
		if !ok {
			t.Check("%s:%d: %q is not an address of a server that can be taken over", d.File, d.Line, text)
			continue
		}
		s := importer.NewObject().Set("url", url)
		if tls.Len() > 0 && strings.HasPrefix(url, "https:") {
			s.Set("tls", tls)
		}
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		r.Set("fixed_response", importer.NewObject().Set("status", 502).Flow())
		t.Check("%s:%d: the route answers 502 until it has servers", d.File, d.Line)
		return
	}
	r.Set("servers", servers)
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
	if scheme != "http" && scheme != "https" && scheme != "h2c" || strings.ContainsAny(rest, "/{} ") {
		return "", false
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

// transport reads how servers are reached.
func (t *translator) transport(d *directive, tls importer.Object) {
	t.Say(d, importer.Same, "")
	for _, o := range d.block {
		switch o.name() {
		case "tls_insecure_skip_verify":
			tls.Set("insecure_skip_verify", true)
			t.Say(o, importer.Same, "tls.insecure_skip_verify")
		case "tls_server_name":
			tls.Set("server_name", o.arg(0))
			t.Say(o, importer.Same, "tls.server_name")
		case "tls_trusted_ca_certs":
			tls.Set("ca_file", o.arg(0))
			t.Say(o, importer.Same, "tls.ca_file")
		case "tls", "versions", "compression", "keepalive", "keepalive_idle_conns":
			t.Say(o, importer.Ignored, "the scheme of the server says it, or it is on by itself")
		}
	}
}

// proxyOption reads an option of reverse_proxy that the whole route has.
func (t *translator) proxyOption(d, o *directive, r importer.Object) {
	switch o.name() {
	case "lb_policy":
		policy, ok := map[string]string{"round_robin": "round_robin", "least_conn": "least_connections", "random": "random", "first": "first",
			"ip_hash": "client_ip_hash", "client_ip_hash": "client_ip_hash", "random_choose": "p2c_ewma", "uri_hash": "hash:path"}[o.arg(0)]
		switch {
		case ok:
			r.Set("load_balancing", policy)
			t.Say(o, importer.Same, "load_balancing")
		case o.arg(0) == "header":
			r.Set("load_balancing", "hash:header:"+o.arg(1))
			t.Say(o, importer.Same, "load_balancing")
		case o.arg(0) == "cookie":
			cookie := importer.NewObject().Set("enabled", true)
			if name := o.arg(1); name != "" {
				cookie.Set("name", name)
			}
			r.Set("sticky_cookie", cookie.Flow())
			t.Say(o, importer.Same, "sticky_cookie")
		}
	case "health_uri", "health_interval", "health_timeout", "health_status", "health_body", "health_passes", "health_fails", "health_port", "health_headers", "health_method":
		t.health(o, r)
	case "fail_duration", "max_fails", "unhealthy_status", "unhealthy_latency", "unhealthy_request_count":
		t.Say(o, importer.Close, "servers that fail are ejected by default: ejection of the route")
	case "lb_try_duration", "lb_retries", "lb_try_interval":
		t.Say(o, importer.Close, "what is idempotent or was not sent yet goes to another server: retry of the route")
	case "flush_interval":
		t.Say(o, importer.Same, "responses are passed on as they come")
	case "trusted_proxies":
		t.Say(o, importer.Close, "client_ip: {trusted: […]} of the proxy")
		t.Check("%s:%d: trusted_proxies: name them in client_ip of the proxy", o.File, o.Line)
	case "header_up", "header_down":
		t.headerRule(o, r, map[string]string{"header_up": "request", "header_down": "response"}[o.name()], o.args())
	}
}

func (t *translator) health(o *directive, r importer.Object) {
	check := r.Object("health_check")
	if check.Empty() {
		r.Set("health_check", importer.NewObject())
		check = r.Object("health_check")
	}
	name, value := map[string]string{"health_uri": "path", "health_interval": "interval", "health_timeout": "timeout", "health_status": "status", "health_body": "body", "health_passes": "rise", "health_fails": "fall", "health_method": "method"}[o.name()], o.arg(0)
	switch {
	case name == "":
		t.Say(o, importer.Impossible, "checks go to the server's own port, with the headers of headgate")
		return
	case name == "rise" || name == "fall":
		n, err := strconv.Atoi(value)
		if err != nil {
			return
		}
		check.Set(name, n)
	case name == "status" && strings.HasSuffix(value, "xx"):
		check.Set(name, value[:1]+"00-"+value[:1]+"99")
	default:
		check.Set(name, value)
	}
	t.Say(o, importer.Same, "health_check.%s", name)
}
