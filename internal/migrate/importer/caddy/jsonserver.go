package caddy

import (
	"net"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// server is a server of Caddy's JSON, whose routes are asked in their order.
type server struct {
	t      *translator
	v      *value
	name   string
	secure bool
	steps  []step
}

// step is what one handler does to the requests that come to it.
type step struct {
	when rules.Condition
	by   *value
	act  func(*result)
}

// result is what becomes of the requests of a region.
type result struct {
	o         importer.Object
	requests  []importer.Object
	responses []importer.Object
	allow     []string
	deny      []string
	host      string // host_header
	strip     string // a prefix that was taken away
	over      bool   // it is answered
}

// jsonServer makes proxies of a server.
func (t *translator) jsonServer(name string, v *value) {
	s := &server{t: t, v: v, name: name}
	skip := v.get("automatic_https", "skip").texts()
	off := v.get("automatic_https", "disable").text == "true"
	s.walk(v.get("routes"), rules.Holds(), "", 0)
	hosts := s.hosts()
	s.secure = v.get("tls_connection_policies").is() || !off && slices.ContainsFunc(hosts, func(h string) bool { return h != "" && !slices.Contains(skip, h) })
	var ports []string
	for _, l := range v.get("listen").list {
		if p := s.listen(l); p != "" {
			ports = append(ports, p)
		}
	}
	redirects := s.secure && !off && v.get("automatic_https", "disable_redirects").text != "true" && !slices.ContainsFunc(ports, func(p string) bool { return strings.HasPrefix(p, "web-") || p == "web" })
	if redirects {
		ports = append(ports, t.port(t.http, "http"))
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	for _, host := range hosts {
		for _, proxy := range s.proxies(host) {
			if host != "" {
				proxy = importer.NewObject().Set("virtual_hosts", []string{host}).Merge(proxy)
			}
			if redirects && host != "" {
				proxy.Set("redirect_http_to_https", true)
			}
			if s.secure && host != "" {
				t.wantACME = true
				proxy.Set("acme", "main")
			}
			proxy.Set("ports", ports)
			t.sites++
			wish := host
			if host == "" {
				wish = name
			}
			t.Proxies.Set(importer.Unused(t.Proxies, wish, "site"), proxy)
		}
	}
	s.settings()
}

// settings gives the other fields of a server their verdicts.
func (s *server) settings() {
	t, v := s.t, s.v
	t.sayValue(v.get("automatic_https"), importer.Same, "acme and redirect_http_to_https of the proxies")
	for _, p := range v.get("tls_connection_policies").list {
		if c := p.get("client_authentication"); c.is() {
			t.sayValue(c, importer.Impossible, "set tls.client_auth and tls.client_ca of the https port")
			t.Check("%s:%d: clients had to show a certificate: set tls.client_auth of the https port", c.File, c.Line)
		}
		t.sayValue(p.get("protocol_min"), importer.Close, "tls.min_version of the port")
		t.sayValue(p, importer.Close, "TLS is spoken by the https port, for all its hosts alike")
	}
	if r := v.get("errors"); r.is() {
		t.sayValue(r, importer.Impossible, "write the pages in error_pages")
		t.Check("%s:%d: the routes for errors were left out: write the pages in error_pages", r.File, r.Line)
	}
	if p := v.get("trusted_proxies"); p.is() {
		t.sayValue(p, importer.Close, "client_ip: {trusted: […]} of the proxies")
		t.Check("%s:%d: trusted_proxies: name them in client_ip of the proxies, or in defaults", p.File, p.Line)
	}
	for _, name := range []string{"logs", "metrics", "read_timeout", "read_header_timeout", "write_timeout", "idle_timeout", "max_header_bytes", "keepalive_interval", "protocols", "listener_wrappers", "strict_sni_host", "client_ip_headers", "trusted_proxies_strict", "enable_full_duplex", "named_routes", "listen_protocols"} {
		t.sayValue(v.get(name), importer.Ignored, "ports have their own limits, and requests of all hosts are logged and measured")
	}
}

// listen makes a port of an address such as :443 or tcp/127.0.0.1:8080.
func (s *server) listen(v *value) string {
	text := v.text
	if network, rest, ok := strings.Cut(text, "/"); ok {
		if network != "tcp" && network != "tcp4" && network != "tcp6" {
			s.t.sayValue(v, importer.Impossible, "ports are addresses of IP")
			return ""
		}
		text = rest
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil || strings.Contains(number, "-") {
		s.t.sayValue(v, importer.Impossible, "not an address with one port")
		return ""
	}
	protocol := "http"
	if number != s.t.http && (s.secure || number == s.t.https) {
		protocol = "https"
		s.secure = true
	}
	name := s.t.port(number, protocol)
	if protocol == "https" {
		s.t.port(number, "http3")
	}
	note := "hosts that no route asks for get 404, where Caddy answers 200 without a body"
	if host != "" && net.ParseIP(host) != nil {
		s.t.Ports.Object(name).Set("address", net.JoinHostPort(host, number))
	} else if host != "" {
		note += "; a port listens on an address, not on a name"
	}
	s.t.sayNote(v, note)
	return name
}

// hosts are those that a condition asks for, and "" for all others.
func (s *server) hosts() (all []string) {
	other := false
	for _, st := range s.steps {
		for _, list := range st.when.Any {
			asked := false
			for _, l := range list {
				if l.Kind != rules.Host {
					continue
				}
				asked = asked || !l.Not
				if !slices.Contains(all, l.Value) {
					all = append(all, l.Value)
				}
			}
			other = other || !asked
		}
	}
	if other {
		all = append(all, "")
	}
	return all
}

// ofHost returns the steps for a host, without what is asked of it.
func (s *server) ofHost(host string) (out []step, atoms []*rules.Atom) {
	for _, st := range s.steps {
		var any [][]rules.Literal
		for _, list := range st.when.Any {
			var left []rules.Literal
			possible := true
			for _, l := range list {
				switch l.Kind {
				case rules.Host:
					possible = possible && hasHost(l.Value, host) != l.Not
				case rules.TLS:
					possible = possible && s.secure != l.Not
				default:
					left = append(left, l)
				}
			}
			if possible {
				any = append(any, left)
			}
		}
		if len(any) == 0 {
			continue
		}
		st.when = rules.Condition{Any: any}
		st.when.Atoms(func(a *rules.Atom) {
			if a.Routes() {
				atoms = append(atoms, a)
			}
		})
		out = append(out, st)
	}
	return out, atoms
}

// hasHost reports whether a host is one of a pattern, in which a star is one label.
func hasHost(pattern, host string) bool {
	if pattern == host {
		return true
	}
	rest, wild := strings.CutPrefix(pattern, "*.")
	_, parent, _ := strings.Cut(host, ".")
	return wild && host != "" && parent == rest
}

// proxies makes the proxies of a host: one for each Host that servers get.
func (s *server) proxies(host string) (out []importer.Object) {
	steps, atoms := s.ofHost(host)
	decide := func(r rules.Region) (*result, string) {
		o := s.decide(steps, r)
		route := o.route(r)
		return o, route.Key() + o.host
	}
	pieces, full := rules.Routes("", atoms, decide, func(left, other rules.Piece[*result]) {
		s.t.Check("%s:%d: the route %s was left out: headgate cannot tell it from %s, which has as many matchers", s.v.File, s.v.Line, left.Label(), other.Label())
	})
	if full {
		s.t.Check("%s:%d: the matchers of %s meet in more ways than routes can be written for: look at its routes with headgate explain", s.v.File, s.v.Line, host)
	}
	var hosts []string
	for _, p := range pieces {
		if !slices.Contains(hosts, p.Out.host) {
			hosts = append(hosts, p.Out.host)
		}
	}
	for _, h := range hosts {
		proxy := importer.NewObject()
		var routes []importer.Object
		for _, p := range pieces {
			if p.Out.host == h {
				o := importer.NewObject()
				p.Set(o)
				routes = append(routes, o.Merge(p.Out.route(p.Region)))
			}
		}
		if h != "" {
			proxy.Set("host_header", h)
		}
		importer.Hoist(proxy, routes, []string{"compression", "headers", "basic_auth", "forward_auth", "request_body_limit", "ip_filter", "redirects"})
		out = append(out, proxy.Set("routes", routes))
	}
	return out
}

// decide runs the steps in their order.
func (s *server) decide(steps []step, r rules.Region) *result {
	o := &result{o: importer.NewObject()}
	for _, st := range steps {
		if o.over {
			break
		}
		st.apply(o, r)
	}
	if !o.over { // Caddy answers what nobody handles by 200 without a body
		o.o.Set("fixed_response", importer.NewObject().Set("status", 200).Flow())
	}
	return o
}

func (st step) apply(o *result, r rules.Region) {
	for _, list := range st.when.Any {
		var who []rules.Literal
		holds := true
		for _, l := range list {
			if l.Kind == rules.Client {
				who = append(who, l)
				continue
			}
			holds = holds && r.Within(l.Atom) != l.Not
		}
		switch {
		case !holds:
		case len(who) == 0:
			st.act(o)
			return
		case who[0].Not:
			for _, l := range who {
				o.allow = append(o.allow, l.Value)
			}
		default:
			o.deny = append(o.deny, who[0].Value)
		}
	}
}

// route is what the result is for a region.
func (o *result) route(r rules.Region) importer.Object {
	out := importer.NewObject()
	out.Merge(o.o)
	if len(o.allow)+len(o.deny) > 0 {
		f := importer.NewObject()
		if len(o.allow) > 0 {
			f.Set("allow", compact(o.allow))
		}
		if len(o.deny) > 0 {
			f.Set("deny", compact(o.deny))
		}
		out.Set("ip_filter", f.Flow())
	}
	headers := o.responses
	if out.Has("servers") {
		headers = slices.Concat(o.requests, o.responses)
		switch {
		case o.strip != "" && o.strip != r.Path:
			out.Set("strip_prefix", false).Set("rewrite", importer.NewObject().Set("regex", "^"+quote(o.strip)).Set("replacement", "").Flow())
		case r.Path != "":
			out.Set("strip_prefix", o.strip != "")
		}
	}
	if len(headers) > 0 {
		out.Set("headers", headers)
	}
	return out
}

func compact(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return slices.Compact(all)
}
