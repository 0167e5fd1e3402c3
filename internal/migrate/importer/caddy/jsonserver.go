package caddy

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// server is a server of Caddy's JSON, whose routes are evaluated in order.
type server struct {
	t       *translator
	v       *value
	name    string
	secure  bool
	ports   []string
	reached map[*value]bool // routes that some request comes to
}

// jsonServer makes proxies of a server. plain are the hosts that another server has on the
// port of HTTP.
func (t *translator) jsonServer(name string, v *value, plain map[string]bool) {
	s := &server{t: t, v: v, name: name, reached: map[*value]bool{}}
	skip := v.get("automatic_https", "skip").texts()
	off := v.get("automatic_https", "disable").text == "true"
	hosts := hostsOf(v.get("routes"), nil)
	asked := func(h string) bool { return !slices.Contains(skip, h) }
	s.secure = v.get("tls_connection_policies").is() || !off && !t.onlyPlain(v) && slices.ContainsFunc(firstHosts(v.get("routes")), asked)
	for _, l := range v.get("listen").list {
		s.listen(l)
	}
	t.connections(v)
	redirects := s.secure && !off && v.get("automatic_https", "disable_redirects").text != "true" && !slices.ContainsFunc(s.ports, t.isPlain)
	any := false
	for _, g := range s.sites(append(hosts, "")) {
		any = any || slices.Contains(g.hosts, "")
		for _, proxy := range g.proxies {
			s.put(g.hosts, proxy, redirects, plain)
		}
	}
	if !any && len(s.ports) > 0 {
		s.strangers()
	}
	s.unreached(v.get("routes"))
	s.settings()
}

// strangers names what hosts get that no site has.
func (s *server) strangers() {
	const note = "hosts that no site has get 404, where Caddy sends an empty 200"
	for _, r := range s.v.get("routes").list {
		if d := r.directive(); d != nil && s.reached[r] {
			s.t.Amend(d, importer.Close, note)
		}
	}
	for _, l := range s.v.get("listen").list {
		if l.directive() == nil {
			s.t.Amend(l, importer.Close, note)
		}
	}
}

// onlyPlain reports whether a server listens on the port of HTTP alone, for which Caddy
// orders no certificates.
func (t *translator) onlyPlain(v *value) bool {
	return !slices.ContainsFunc(v.get("listen").texts(), func(l string) bool { return !strings.HasSuffix(l, ":"+t.http) })
}

// firstHosts returns the hosts in the routes of a server themselves. Those of routes
// within others get no certificates in Caddy.
func firstHosts(list *value) (all []string) {
	for _, r := range list.list {
		for _, set := range r.get("match").list {
			all = hostsIn(set, all)
		}
	}
	return all
}

// isPlain reports whether a port speaks HTTP without TLS.
func (t *translator) isPlain(port string) bool {
	return t.Ports.Object(port).Text("protocol") == "http"
}

// put writes a proxy for hosts: apart for those that differ in their certificates and in
// whether clients are sent to HTTPS.
func (s *server) put(hosts []string, proxy importer.Object, redirects bool, plain map[string]bool) {
	type kind struct {
		acme     string
		redirect bool
		demanded bool
	}
	var kinds []kind
	of := map[kind][]string{}
	for _, h := range hosts {
		k := kind{redirect: redirects && h != "" && !plain[h] && (s.t.redirected[h] == "" || s.t.redirected[h] == s.name)}
		if k.redirect {
			s.t.redirected[h] = s.name
		}
		if k.demanded = s.secure && s.t.demanded(h); k.demanded {
			k.acme = s.t.demandEntry(h)
		} else if s.secure && h != "" {
			k.acme = s.t.acmeOf(h)
		}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], h)
	}
	for _, k := range kinds {
		o, ports := importer.NewObject(), slices.Clone(s.ports)
		wish := s.name
		if of[k][0] != "" {
			o.Set("virtual_hosts", virtualHosts(of[k]))
			wish = of[k][0]
		}
		if k.redirect {
			ports = append(ports, s.t.port("", s.t.http, "http"))
			o.Set("redirect_http_to_https", true)
		}
		if k.acme != "" {
			o.Set("acme", k.acme)
		}
		if k.demanded {
			s.t.setDemand(o, of[k])
		}
		slices.Sort(ports)
		o.Set("ports", slices.Compact(ports)).Merge(proxy)
		s.t.trusted(s.v.get("trusted_proxies"), o)
		s.became(o)
		s.t.sites++
		s.t.Proxies.Set(importer.Unused(s.t.Proxies, wish, "site"), o)
	}
}

// became names the proxy of the sites of a Caddyfile that have its hosts.
func (s *server) became(o importer.Object) {
	f := o.Field("routes")
	for _, r := range s.v.get("routes").list {
		if d := r.directive(); d != nil && s.reached[r] {
			s.t.Became(d, importer.Same, f, "a proxy with its virtual hosts and ports")
			for _, c := range d.block {
				if c.name() == "bind" {
					s.t.Became(c, importer.Same, f, "the address of its ports")
				}
			}
		}
	}
}

// site is hosts whose requests get the same.
type site struct {
	hosts   []string
	proxies []importer.Object
	key     string
}

// maxSites bounds how often the routes of a server are gone through.
const maxSites = 1000

// sites makes the proxies of each host, and one of the hosts for which they are the same.
func (s *server) sites(hosts []string) (out []site) {
	if len(hosts) > maxSites {
		s.t.Check("%s:%d: the server %s has more than %d hosts; the rest was left out", s.v.File, s.v.Line, s.name, maxSites)
		hosts = hosts[:maxSites]
	}
	if len(s.ports) == 0 {
		s.t.Check("%s:%d: the server %s was left out: it has no port", s.v.File, s.v.Line, s.name)
		return nil
	}
	for _, host := range hosts {
		w := &walker{s: s, t: s.t, host: host, notes: map[*value]string{}}
		w.walk(s.v.get("routes"), rules.Holds(), nil, 0)
		if len(w.steps) == 0 && (host != "" || len(hosts) > 1) {
			continue
		}
		one := site{hosts: []string{host}, proxies: w.proxies()}
		for _, p := range one.proxies {
			one.key += p.Key()
		}
		i := slices.IndexFunc(out, func(o site) bool { return o.key == one.key && host != "" && o.hosts[0] != "" })
		if i < 0 {
			out = append(out, one)
			continue
		}
		out[i].hosts = append(out[i].hosts, host)
	}
	return out
}

// unreached adds a verdict to the routes that get no requests.
func (s *server) unreached(list *value) {
	for _, r := range list.list {
		if !s.reached[r] {
			s.t.sayValue(r, importer.Ignored, "no request comes to it: another route answers before, or the site has not the host")
			continue
		}
		for _, h := range r.get("handle").list {
			s.unreached(h.get("routes"))
		}
	}
}

// settings adds verdicts to the other fields of a server.
func (s *server) settings() {
	t, v := s.t, s.v
	t.sayValue(v.get("automatic_https"), importer.Ignored, "acme and redirect_http_to_https of the proxies")
	for _, p := range v.get("tls_connection_policies").list {
		if c := p.get("client_authentication"); c.is() {
			t.sayValue(c, importer.Impossible, "set tls.client_auth and tls.client_ca of the https port")
			t.Check("%s:%d: clients had to show a certificate: set tls.client_auth of the https port", c.File, c.Line)
		}
		t.sayValue(p.get("protocol_min"), importer.Impossible, "write tls.min_version of the port")
		t.sayValue(p, importer.Ignored, "TLS is spoken by the https port, for all its hosts alike")
	}
	t.errorRoutes(v.get("errors"))
	for _, name := range []string{"logs", "metrics", "read_timeout", "read_header_timeout", "write_timeout", "idle_timeout", "max_header_bytes", "keepalive_interval", "protocols", "listener_wrappers", "strict_sni_host", "client_ip_headers", "trusted_proxies_strict", "enable_full_duplex", "named_routes", "listen_protocols"} {
		t.sayValue(v.get(name), importer.Ignored, "ports have their own limits, and requests of all hosts are logged and measured")
	}
}

// maxRange bounds how many ports an address with a range of them has.
const maxRange = 32

// listen makes ports of an address such as :443, tcp/127.0.0.1:8080 or :8000-8010.
func (s *server) listen(v *value) {
	text := v.text
	if network, rest, ok := strings.Cut(text, "/"); ok {
		if network != "tcp" && network != "tcp4" && network != "tcp6" {
			s.t.lost(v, "ports are addresses of IP")
			return
		}
		text = rest
	}
	host, numbers, err := net.SplitHostPort(text)
	first, last, many := strings.Cut(numbers, "-")
	if !many {
		last = first
	}
	from, err1 := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(last, 10, 16)
	if err != nil || err1 != nil || err2 != nil || from == 0 || to < from || to-from >= maxRange {
		s.t.lost(v, "not an address with a port, or with more than 32 of them")
		return
	}
	for n := from; n <= to; n++ {
		s.ports = append(s.ports, s.port(host, strconv.FormatUint(n, 10))...)
	}
	note := "a port; hosts without a route get 404, where Caddy answers 200 without a body"
	if host != "" && net.ParseIP(host) == nil {
		note += "; it listens on an address, not on a name"
	}
	if v.by == nil {
		f := importer.Field{}
		for _, p := range s.ports {
			f = f.Or(s.t.Ports.Field(p))
		}
		s.t.Became(v, importer.Close, f, "%s", note)
	}
}

// port returns the ports for a number on a host.
func (s *server) port(host, number string) []string {
	if net.ParseIP(host) == nil {
		host = ""
	}
	if !s.secure && number != s.t.https || number == s.t.http {
		return []string{s.t.port(host, number, "http")}
	}
	s.secure = true
	return []string{s.t.port(host, number, "https"), s.t.port(host, number, "http3")}
}

// port returns the name of a port, which is made if there is none.
func (t *translator) port(host, number, protocol string) string {
	name := map[string]string{"http": "web", "https": "websecure", "http3": "quic"}[protocol]
	if number != map[string]string{"http": t.http, "https": t.https, "http3": t.https}[protocol] {
		name += "-" + number
	}
	if host == "" {
		host = "0.0.0.0"
	}
	address := net.JoinHostPort(host, number)
	for base, n := name, 2; t.Ports.Has(name); n++ {
		if have := t.Ports.Object(name); have.Text("address") == address || host == "0.0.0.0" && n == 2 {
			if host == "0.0.0.0" { // it accepts the requests of all addresses
				have.Set("address", address)
			}
			return name
		}
		if strings.HasPrefix(t.Ports.Object(name).Text("address"), "0.0.0.0:") {
			return name
		}
		name = base + "-" + strconv.Itoa(n)
	}
	t.Ports.Set(name, importer.NewObject().Set("address", address).Set("protocol", protocol).Flow())
	return name
}

// hostsOf returns the hosts in matchers of routes, each once.
func hostsOf(list *value, all []string) []string {
	for _, r := range list.list {
		for _, set := range r.get("match").list {
			all = hostsIn(set, all)
		}
		for _, h := range r.get("handle").list {
			all = hostsOf(h.get("routes"), all)
		}
	}
	return all
}

func hostsIn(set *value, all []string) []string {
	for _, h := range set.get("host").texts() {
		if h = folded(h); isHost(h) && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	for _, none := range set.get("not").list {
		all = hostsIn(none, all)
	}
	return all
}

// anyLabel is the host of a matcher for every name of one label, such as localhost.
const anyLabel = "*"

// virtualHosts writes hosts of matchers as virtual hosts.
func virtualHosts(hosts []string) []string {
	out := slices.Clone(hosts)
	for i, h := range out {
		if h == anyLabel {
			out[i] = "~^[^.]+$"
		}
	}
	return out
}

// isHost reports whether a host of a matcher is a name, or *. and a name. Either may have a
// value of the environment in it.
func isHost(host string) bool {
	return host == anyLabel || host != "" && !strings.ContainsAny(strings.TrimPrefix(host, "*."), "*/") && !strings.Contains(strings.ReplaceAll(host, "${", ""), "{")
}

// hasHost reports whether a host is one of a pattern, in which a star is one label.
func hasHost(pattern, host string) bool {
	if pattern == host {
		return true
	}
	if pattern == anyLabel {
		return host != "" && !strings.ContainsAny(host, ".*")
	}
	rest, wild := strings.CutPrefix(pattern, "*.")
	_, parent, _ := strings.Cut(host, ".")
	return wild && host != "" && parent == rest
}
