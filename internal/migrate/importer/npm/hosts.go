package npm

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// proxyHost makes a proxy host a proxy.
func (t *translator) proxyHost(r *record) {
	p := t.host(r)
	if p.Empty() {
		return
	}
	p.Append("headers", realIP())
	p.Append("headers", importer.NewObject().Set("direction", "request").Set("name", "X-Forwarded-Scheme").Set("value", "{scheme}").Flow())
	t.access(r, p, "access_list_id")
	t.hsts(r, p)
	t.caching(r, p)
	t.plainFlags(r)
	for _, name := range []string{"forward_scheme", "forward_host", "forward_port"} {
		r.seen[name] = true
	}
	server := serverURL(r.text("forward_scheme"), r.text("forward_host"), r.text("forward_port"), "")
	if server == "" {
		t.omit(r, "forward_host", importer.Impossible, "not an address that a request can be sent to; the host answers 502 until its server is named")
		t.Check("%s: its server %s://%s:%s cannot be used", r.title(), r.text("forward_scheme"), r.text("forward_host"), r.text("forward_port"))
		p.Set("routes", []importer.Object{importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 502))})
		t.asWritten(r, p, "return 502;\n", nil)
		t.Proxies.Set(t.proxyName(r), p)
		return
	}
	main := importer.NewObject().Set("servers", []importer.Object{insecure(server)})
	if rootOf(r) {
		t.omit(r, "forward_host", importer.Ignored, "its lines of nginx have a location / of their own")
	} else {
		t.became(r, "forward_host", importer.Same, main.LastOf("servers"), "%s", server)
	}
	p.Set("routes", []importer.Object{})
	locations := t.locations(r)
	for _, l := range locations {
		p.Append("routes", l.route)
	}
	p.Append("routes", main)
	t.asWritten(r, p, "add_header X-Served-By $host;\n"+fields+"proxy_pass "+server+";\n", locations)
	t.Proxies.Set(t.proxyName(r), p)
}

func (t *translator) proxyName(r *record) string {
	names := r.domains()
	if len(names) == 0 {
		return importer.Unused(t.Proxies, "", fmt.Sprintf("host-%d", r.id))
	}
	return importer.Unused(t.Proxies, strings.ToLower(strings.TrimPrefix(names[0], "*.")), fmt.Sprintf("host-%d", r.id))
}

// realIP is what Nginx Proxy Manager sends to every server.
func realIP() importer.Object {
	return importer.NewObject().Set("direction", "request").Set("name", "X-Real-IP").Set("value", "{client_ip}").Flow()
}

// serverURL returns the URL of a server, empty if it cannot be one.
func serverURL(scheme, host, port, path string) string {
	scheme = strings.ToLower(scheme)
	if scheme == "" {
		scheme = "http"
	}
	if inner, below, ok := strings.Cut(host, "/"); ok && path == "" {
		host, path = inner, "/"+below
	}
	host = strings.Trim(host, "[]")
	n, err := strconv.ParseUint(port, 10, 16)
	if scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, " $%?#@") || err != nil || n == 0 {
		return ""
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: path}
	return u.String()
}

// insecure is a server as Nginx Proxy Manager reaches it: over TLS it checks nothing.
func insecure(text string) importer.Object {
	s := importer.NewObject().Set("url", text)
	if strings.HasPrefix(text, "https:") {
		s.Set("tls", importer.NewObject().Set("insecure_skip_verify", true).Flow())
	}
	return s.Flow()
}

// host reads what all kinds of hosts have; the zero Object says that it has no name.
func (t *translator) host(r *record) importer.Object {
	names := r.domains()
	if len(names) == 0 {
		t.omit(r, "domain_names", importer.Impossible, "the host has no name, or its names cannot be read")
		return importer.Object{}
	}
	p := importer.NewObject().Set("virtual_hosts", names)
	t.became(r, "domain_names", importer.Same, p.Field("virtual_hosts"), "virtual_hosts")
	if r.fields["enabled"] != nil && !r.flag("enabled") {
		t.became(r, "enabled", importer.Same, p.Set("active", false).Field("active"), "active: false")
	}
	r.ignore("enabled", "certificate", "access_list", "use_default_location", "nginx_online", "nginx_err", "ipv6")
	if id := r.number("certificate_id"); id > 0 {
		t.wantTLS = true
		became, note := importer.Value("protocol", "https"), "the certificate that fits the host is chosen by its name"
		for _, c := range t.tables["certificate"] {
			if c.id == id && c.text("provider") == "letsencrypt" {
				became, note = p.Set("acme", "letsencrypt").Field("acme"), "acme: letsencrypt"
			}
		}
		t.became(r, "certificate_id", importer.Same, became, "%s", note)
		if r.flag("ssl_forced") {
			t.became(r, "ssl_forced", importer.Same, p.Set("redirect_http_to_https", true).Field("redirect_http_to_https"), "redirect_http_to_https")
		}
		if r.flag("http2_support") {
			t.became(r, "http2_support", importer.Same, importer.ByItself(), "always on")
		}
		if r.flag("http3_support") {
			t.omit(r, "http3_support", importer.Impossible, "add a port with protocol http3 at 0.0.0.0:443")
			t.Check("HTTP/3 was on for %s: add a port {address: \"0.0.0.0:443\", protocol: http3}", names[0])
		}
	} else {
		t.onlyPlain(r)
	}
	r.ignore("certificate_id", "ssl_forced", "http2_support", "http3_support", "hsts_enabled", "hsts_subdomains")
	return p
}

// onlyPlain adds a verdict to settings of TLS if there is no certificate.
func (t *translator) onlyPlain(r *record) {
	for _, name := range []string{"ssl_forced", "hsts_enabled", "http2_support", "http3_support"} {
		if r.flag(name) {
			t.omit(r, name, importer.Ignored, "it does nothing without a certificate")
		}
	}
}

// access makes a host use the policy of its access list.
func (t *translator) access(r *record, p importer.Object, name string) {
	id := r.number(name)
	if id <= 0 {
		return
	}
	policy, ok := t.policies[id]
	if !ok {
		t.omit(r, name, importer.Impossible, "there is no such access list")
		t.Check("%s names access list %d, which does not exist: it is open to all clients", r.title(), id)
		return
	}
	t.became(r, name, importer.Same, p.Set("use", []string{policy}).Field("use"), "use: [%s]", policy)
}

func (t *translator) hsts(r *record, p importer.Object) {
	if !r.flag("hsts_enabled") || r.number("certificate_id") <= 0 || !r.flag("ssl_forced") {
		return
	}
	value := "max-age=63072000; preload"
	if r.flag("hsts_subdomains") {
		value = "max-age=63072000; includeSubDomains; preload"
	}
	rule := importer.NewObject().Set("direction", "response").Set("name", "Strict-Transport-Security").Set("value", value)
	p.Append("headers", rule)
	t.became(r, "hsts_enabled", importer.Same, rule.Field("value"), "a response header rule")
	if r.flag("hsts_subdomains") {
		t.became(r, "hsts_subdomains", importer.Same, rule.Field("value"), "")
	}
}

func (t *translator) caching(r *record, p importer.Object) {
	if !r.flag("caching_enabled") {
		return
	}
	t.became(r, "caching_enabled", importer.Close, p.Set("cache", importer.NewObject().Set("enabled", true).Flow()).Field("cache"), "headgate caches what the server allows; Nginx Proxy Manager caches pictures, styles and scripts for 30 minutes whatever it says")
}

// plainFlags adds verdicts to switches that need nothing.
func (t *translator) plainFlags(r *record) {
	if r.flag("block_exploits") {
		t.omit(r, "block_exploits", importer.Ignored, "it looks for words in queries; headgate refuses requests that servers could read in two ways instead")
	}
	if r.flag("allow_websocket_upgrade") {
		t.became(r, "allow_websocket_upgrade", importer.Same, importer.ByItself(), "always on")
	}
	if r.flag("trust_forwarded_proto") {
		t.omit(r, "trust_forwarded_proto", importer.Impossible, "name the proxies in front: client_ip: {trusted: […]}")
		t.Check("%s trusts X-Forwarded-Proto of all peers: name the proxies in front of it in client_ip", r.title())
	}
}

// location is a custom location of a proxy host.
type location struct {
	Path           string `json:"path"`
	ForwardScheme  string `json:"forward_scheme"`
	ForwardHost    string `json:"forward_host"`
	ForwardPort    any    `json:"forward_port"`
	AdvancedConfig string `json:"advanced_config"`
}

// custom is a custom location with its server and its route.
type custom struct {
	of     location
	server string
	route  importer.Object
}

// locations makes custom locations routes.
func (t *translator) locations(r *record) (routes []custom) {
	var list []location
	if err := r.into("locations", &list); err != nil {
		t.omit(r, "locations", importer.Impossible, "cannot be read: %v", err)
		return nil
	}
	for _, l := range list {
		one := *r
		one.fields = map[string]any{"location": l.Path + " → " + fmt.Sprint(l.ForwardScheme, "://", l.ForwardHost, ":", l.ForwardPort), "domain_names": r.fields["domain_names"]}
		host, path, hasPath := strings.Cut(l.ForwardHost, "/")
		server := serverURL(l.ForwardScheme, host, fmt.Sprint(l.ForwardPort), "")
		switch {
		case !strings.HasPrefix(l.Path, "/"):
			t.omit(&one, "location", importer.Impossible, "only prefixes of paths are possible, not %q", l.Path)
			t.Check("%s: the location %q was left out; its requests go to the host's own server", r.title(), l.Path)
			continue
		case server == "":
			t.omit(&one, "location", importer.Impossible, "its server is not an address")
			t.Check("%s: the location %q was left out: its server is not an address", r.title(), l.Path)
			continue
		case l.Path == "/":
			t.omit(&one, "location", importer.Impossible, "the host has a server for / already")
			t.Check("%s: the location / was left out", r.title())
			continue
		}
		route := importer.NewObject().Set("path", strings.TrimSuffix(l.Path, "/"))
		verdict, note := importer.Same, "a route"
		if hasPath {
			server += "/" + path
		} else {
			route.Set("strip_prefix", false)
		}
		if !strings.HasSuffix(l.Path, "/") {
			verdict, note = importer.Close, "headgate matches whole segments: "+l.Path+"x does not reach it"
		}
		route.Set("servers", []importer.Object{insecure(server)})
		t.became(&one, "location", verdict, route.Field("path"), "%s", note)
		routes = append(routes, custom{l, server, route})
	}
	return routes
}

// redirectionHost makes a redirection host a proxy with a redirect rule.
func (t *translator) redirectionHost(r *record) {
	p := t.host(r)
	if p.Empty() {
		return
	}
	t.hsts(r, p)
	t.plainFlags(r)
	scheme := strings.ToLower(r.text("forward_scheme"))
	if scheme == "" || scheme == "$scheme" || scheme == "auto" {
		scheme = "{scheme}"
	}
	to := scheme + "://" + r.text("forward_domain_name")
	status := int(r.number("forward_http_code"))
	switch status {
	case 301, 302, 303, 307, 308:
	case 0:
		status = 301
	default:
		t.became(r, "forward_http_code", importer.Close, importer.Value("status", 302), "302: headgate redirects with 301, 302, 303, 307 or 308")
		status = 302
	}
	rule := importer.NewObject().Set("regex", "^").Set("status", status)
	if r.flag("preserve_path") {
		rule.Set("target", to+"{path}")
		t.became(r, "preserve_path", importer.Same, rule.Field("target"), "")
		t.became(r, "forward_domain_name", importer.Same, rule.Field("target"), "a redirect rule")
	} else {
		if !strings.Contains(r.text("forward_domain_name"), "/") {
			to += "/"
		}
		rule.Set("target", to)
		t.became(r, "forward_domain_name", importer.Close, rule.Field("target"), "a redirect rule; the query of the request is kept")
	}
	asNginx := strings.ReplaceAll(strings.ReplaceAll(rule.Text("target"), "{scheme}", "$scheme"), "{path}", "$request_uri")
	p.Set("redirects", []importer.Object{rule})
	p.Set("routes", []importer.Object{importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 404).Flow())})
	t.asWritten(r, p, fmt.Sprintf("return %d %s;\n", status, asNginx), nil)
	t.Proxies.Set(t.proxyName(r), p)
}

// deadHost makes a 404 host a fixed response.
func (t *translator) deadHost(r *record) {
	p := t.host(r)
	if p.Empty() {
		return
	}
	t.hsts(r, p)
	p.Set("routes", []importer.Object{importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 404).Flow())})
	t.asWritten(r, p, "return 404;\n", nil)
	t.Proxies.Set(t.proxyName(r), p)
}

// stream makes a stream a TCP proxy, a UDP proxy, or both.
func (t *translator) stream(r *record) {
	host := r.text("forwarding_host")
	if host == "" {
		host = r.text("forward_ip")
	}
	to, port := net.JoinHostPort(strings.Trim(host, "[]"), r.text("forwarding_port")), r.text("incoming_port")
	n, err := strconv.ParseUint(port, 10, 16)
	m, bad := strconv.ParseUint(r.text("forwarding_port"), 10, 16)
	if err != nil || n == 0 || bad != nil || m == 0 || host == "" {
		t.omit(r, "incoming_port", importer.Impossible, "ranges and empty ports are not possible: write one stream a port")
		t.Check("%s: its ports cannot be translated", r.title())
		return
	}
	s := importer.NewObject().Set("address", "0.0.0.0:"+port)
	if r.fields["enabled"] != nil && !r.flag("enabled") {
		t.became(r, "enabled", importer.Same, s.Set("active", false).Field("active"), "active: false")
	}
	s.Set("servers", []importer.Object{importer.NewObject().Set("address", to).Flow()})
	r.ignore("enabled", "forwarding_host", "forwarding_port", "certificate")
	if r.number("certificate_id") > 0 {
		t.omit(r, "certificate_id", importer.Impossible, "TLS is not ended for TCP; pass it on by its name, or let the server speak it")
		t.Check("%s: TLS was ended here; its clients now reach the server as they are", r.title())
	}
	if r.flag("tcp_forwarding") {
		t.TCP.Set(importer.Unused(t.TCP, "tcp-"+port, "tcp"), s)
		t.became(r, "tcp_forwarding", importer.Same, s.Field("address"), "a TCP proxy")
	}
	if r.flag("udp_forwarding") {
		t.UDP.Set(importer.Unused(t.UDP, "udp-"+port, "udp"), s)
		t.became(r, "udp_forwarding", importer.Same, s.Field("address"), "a UDP proxy")
	}
}

// asWritten is the target of a redirect that nginx sends as it is: without the query of the
// request, and without variables.
func asWritten(url string) string {
	target := strings.ReplaceAll(strings.ReplaceAll(url, "$", "$$"), "{", "{{")
	head, fragment, found := strings.Cut(target, "#")
	if !strings.Contains(head, "?") {
		head += "?"
	}
	if found {
		return head + "#" + fragment
	}
	return head
}

// whole reads settings of the whole.
func (t *translator) whole(r *record) {
	id := r.text("id")
	r.ignore("name", "description")
	if id != "default-site" {
		return
	}
	var meta struct {
		Redirect string `json:"redirect"`
		HTML     string `json:"html"`
	}
	_ = r.into("meta", &meta)
	switch value := r.text("value"); value {
	case "", "404", "444":
		t.became(r, "value", importer.Same, importer.ByItself(), "a host that no proxy has gets 404")
	case "redirect":
		rule := importer.NewObject().Set("regex", "^").Set("target", asWritten(meta.Redirect)).Set("status", 301)
		p := importer.NewObject().Set("redirects", []importer.Object{rule})
		p.Set("routes", []importer.Object{importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 404).Flow())})
		t.Proxies.Set(importer.Unused(t.Proxies, "default-site", "default"), p)
		t.became(r, "value", importer.Same, p.Field("redirects"), "a proxy without virtual hosts")
	case "html":
		p := importer.NewObject().Set("routes", []importer.Object{importer.NewObject().Set("fixed_response", importer.NewObject().Set("status", 200).Set("body", strings.ReplaceAll(meta.HTML, "{", "{{")).Set("content_type", "text/html; charset=utf-8"))})
		t.Proxies.Set(importer.Unused(t.Proxies, "default-site", "default"), p)
		t.became(r, "value", importer.Same, p.Field("routes"), "a fixed response")
	default: // congratulations
		t.omit(r, "value", importer.Ignored, "a page of Nginx Proxy Manager itself (%s); a host that no proxy has gets 404", value)
	}
}
