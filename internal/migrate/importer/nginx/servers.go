package nginx

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// server is a server block.
type server struct {
	d       *directive
	names   []string // virtual hosts; none is any host
	ports   []string // names of ports
	secure  bool     // one of them is https
	plain   bool     // one of them is http
	isFirst bool     // of its port: nginx sends it requests for unknown hosts
	marked  bool     // it says default_server

	numbers   []string // of ports
	firstName string   // $server_name
}

// httpBlock goes through an http block: what is common first, then the servers.
func (t *translator) httpBlock(d *directive) {
	t.http = d
	t.variablesOf(d.block)
	for _, c := range d.block {
		switch c.name {
		case "upstream":
			t.upstreams[c.arg(0)] = c
		case "limit_req_zone":
			t.zones[zoneName(c)] = c
		case "map":
			t.mapBlock(c)
		case "geo":
			t.geoBlock(c)
		case "server":
			t.server(c)
		}
	}
}

// variablesOf notes which variables directives set.
func (t *translator) variablesOf(block []*directive) {
	for _, d := range block {
		if d.name == "set" || d.name == "set_escape_uri" {
			t.set[strings.TrimPrefix(d.arg(0), "$")] = true
		}
		t.variablesOf(d.block)
	}
}

// server goes through the listen and server_name directives of a server.
func (t *translator) server(d *directive) {
	s := &server{d: d}
	for _, l := range d.find("listen") {
		t.listen(s, l)
	}
	if len(s.ports) == 0 {
		s.ports, s.numbers = append(s.ports, t.port("0.0.0.0:80", "http")), append(s.numbers, "80")
		s.plain = true
		t.Check("%s:%d: the server has no listen; port 80 was assumed", d.File, d.Line)
	}
	for _, n := range d.find("server_name") {
		t.serverName(s, n)
	}
	s.isFirst = !slices.ContainsFunc(t.servers, func(o *server) bool { return overlap(o.ports, s.ports) })
	t.servers = append(t.servers, s)
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

// listen makes a port.
func (t *translator) listen(s *server, d *directive) {
	address, what := listenAddress(d.arg(0))
	if what != "" {
		t.AddVerdict(d, importer.Impossible, what)
		return
	}
	protocol, verdict, note := "http", importer.Same, ""
	for _, option := range d.args[min(1, len(d.args)):] {
		switch {
		case option == "ssl":
			protocol = "https"
		case option == "quic":
			protocol = "http3"
		case option == "default_server" || option == "default":
			s.marked = true
		case option == "proxy_protocol":
			verdict, note = importer.Close, "name the load balancers that send the header: proxy_protocol: {trusted: […]} at the port"
			t.Check("%s:%d: proxy_protocol needs the addresses of the load balancers at port %s", d.File, d.Line, address)
		case option == "http2" || strings.HasPrefix(option, "backlog=") || option == "reuseport" || option == "deferred" || strings.HasPrefix(option, "so_keepalive=") || strings.HasPrefix(option, "ipv6only=") || strings.HasPrefix(option, "fastopen="):
		default:
			verdict, note = importer.Close, "the option "+option+" is left out"
		}
	}
	if protocol == "http" && len(s.d.find("ssl")) > 0 && s.d.find("ssl")[0].arg(0) == "on" {
		protocol = "https"
	}
	name := t.port(address, protocol)
	if !slices.Contains(s.ports, name) {
		s.ports, s.numbers = append(s.ports, name), append(s.numbers, address[strings.LastIndexByte(address, ':')+1:])
	}
	s.secure = s.secure || protocol != "http"
	s.plain = s.plain || protocol == "http"
	t.Became(d, verdict, t.Ports.Field(name), "%s", note)
}

// listenAddress returns an address as headgate writes it, or what is wrong.
func listenAddress(text string) (address, what string) {
	switch {
	case strings.HasPrefix(text, "unix:"):
		return "", "ports are addresses of IP, not sockets in files"
	case text == "":
		return "", "the directive names no address"
	}
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return fmt.Sprintf("0.0.0.0:%d", n), ""
	}
	text = strings.Replace(text, "*:", "0.0.0.0:", 1)
	if strings.HasPrefix(text, "localhost") {
		text = strings.Replace(text, "localhost", "127.0.0.1", 1)
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.String(), ""
	}
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return netip.AddrPortFrom(a, 80).String(), ""
	}
	return "", "an address by name; write its IP address"
}

// port returns the name of the port with an address, which is made if it is new. The
// unspecified addresses of IPv4 and IPv6 with one number are one port.
func (t *translator) port(address, protocol string) string {
	a := netip.MustParseAddrPort(address)
	if a.Addr().IsUnspecified() {
		for _, other := range []string{"0.0.0.0", "[::]"} {
			if name, ok := t.portNames[fmt.Sprintf("%s:%d %s", other, a.Port(), protocol)]; ok {
				if a.Addr().Is6() && other == "0.0.0.0" {
					t.Ports.Object(name).Set("address", fmt.Sprintf("[::]:%d", a.Port()))
				}
				return name
			}
		}
	}
	key := address + " " + protocol
	if name, ok := t.portNames[key]; ok {
		return name
	}
	name := map[string]string{"http": "web", "https": "websecure", "http3": "quic"}[protocol]
	if usual := map[string]uint16{"http": 80, "https": 443, "http3": 443}[protocol]; a.Port() != usual {
		name = fmt.Sprintf("%s-%d", name, a.Port())
	}
	name = importer.Unused(t.Ports, name, "port")
	t.portNames[key] = name
	t.Ports.Set(name, importer.NewObject().Set("address", address).Set("protocol", protocol).Flow())
	return name
}

// serverName translates the names of a server.
func (t *translator) serverName(s *server, d *directive) {
	verdict, note := importer.Same, ""
	for _, n := range d.args {
		if s.firstName == "" {
			s.firstName = n
		}
		switch {
		case n == "_" || n == "" || n == ".":
			note = "no name: any host that no other proxy has"
		case n == "$hostname":
			verdict, note = importer.Impossible, "the name of the machine is not known here; write it"
		case strings.HasPrefix(n, "~"):
			expr := strings.TrimPrefix(strings.TrimPrefix(n, "~"), "*")
			if what := checkRegex(expr); what != "" {
				verdict, note = importer.Impossible, what
				continue
			}
			if !strings.HasPrefix(expr, "^") {
				expr = "^.*" + expr
			}
			if !strings.HasSuffix(expr, "$") {
				expr += ".*$"
			}
			s.names = append(s.names, "~"+expr)
		case strings.HasPrefix(n, "."):
			s.names = append(s.names, n[1:], "*"+n)
			verdict, note = importer.Close, "a wildcard matches one label; with nginx, it matches several"
		case strings.HasPrefix(n, "*."):
			s.names = append(s.names, n)
			verdict, note = importer.Close, "a wildcard matches one label; with nginx, it matches several"
		case strings.HasSuffix(n, ".*"):
			s.names = append(s.names, "~^"+strings.ReplaceAll(strings.TrimSuffix(n, "*"), ".", `\.`)+".+$")
		default:
			s.names = append(s.names, strings.ToLower(n))
		}
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	if verdict == importer.Impossible {
		t.AddVerdict(d, importer.Impossible, "%s", note)
		return
	}
	t.Became(d, verdict, importer.Field{}, "%s", note) // the field is that of the proxies: see proxy
}

// certificate translates the certificates of a server.
func (t *translator) certificate(s *server, name string) {
	certs, keys := t.effective(s.d, "ssl_certificate"), t.effective(s.d, "ssl_certificate_key")
	for i, c := range certs {
		if i >= len(keys) {
			t.AddVerdict(c, importer.Impossible, "the certificate has no key beside it")
			continue
		}
		t.certificatePair(c, keys[i], name, i)
	}
	t.clientCertificates(s, name)
	for _, d := range t.effective(s.d, "ssl_protocols") {
		if slices.Contains(d.args, "TLSv1.2") || !slices.Contains(d.args, "TLSv1.3") {
			t.Became(d, importer.Same, importer.ByItself(), "TLS 1.2 and later; older versions are not spoken")
			continue
		}
		for _, port := range s.ports {
			if o := t.Ports.Object(port); !o.Empty() && strings.HasPrefix(port, "websecure") {
				tls := t.portTLS(o)
				tls.Set("min_version", "1.3")
				t.Became(d, importer.Same, tls.Field("min_version"), "")
			}
		}
		t.AddVerdict(d, importer.Ignored, "no port of the server has TLS")
	}
	for _, d := range s.d.find("ssl") {
		t.Became(d, importer.Same, t.Ports.Field(s.ports[0]), "")
	}
}

// effective returns the directives with a name that hold in a server: its own, else
// those around it.
func (t *translator) effective(d *directive, name string) []*directive {
	if own := d.find(name); len(own) > 0 || t.http == nil {
		return own
	}
	return t.http.find(name)
}

// portTLS returns the TLS settings of a port.
func (t *translator) portTLS(port importer.Object) importer.Object {
	if o := port.Object("tls"); !o.Empty() {
		return o
	}
	port.Set("tls", importer.NewObject().Flow())
	return port.Object("tls")
}

// clientCertificates translates client certificates. A port of headgate requests them
// from all of its clients, so that all servers of the port have to request the same.
func (t *translator) clientCertificates(s *server, name string) {
	asked := func(s *server) string {
		verify, ca := t.effective(s.d, "ssl_verify_client"), t.effective(s.d, "ssl_client_certificate")
		if len(verify) == 0 || len(ca) == 0 || verify[0].arg(0) == "off" {
			return ""
		}
		return verify[0].arg(0) + " " + t.path(ca[0].arg(0))
	}
	all := slices.Concat(t.effective(s.d, "ssl_verify_client"), t.effective(s.d, "ssl_client_certificate"))
	how, ca, on := strings.Cut(asked(s), " ")
	if !on {
		for _, d := range all {
			t.AddVerdict(d, importer.Ignored, "no client certificate is requested")
		}
		return
	}
	mode := map[string]string{"on": "required", "optional": "optional"}[how]
	if mode == "" || slices.ContainsFunc(t.servers, func(o *server) bool { return overlap(o.ports, s.ports) && asked(o) != asked(s) }) {
		for _, d := range all {
			t.AddVerdict(d, importer.Impossible, "client certificates are requested by the port, for all of its hosts: give the hosts a port of their own with tls: {client_auth: required, client_ca: %s}", ca)
		}
		t.Check("proxy %s: its clients had to show a certificate (ssl_verify_client %s); here none is requested: give it a port of its own with tls: {client_auth: required, client_ca: %s}", name, how, ca)
		return
	}
	for _, port := range s.ports {
		o := t.Ports.Object(port)
		if o.Empty() || o.Text("protocol") == "http" {
			continue
		}
		tls := t.portTLS(o).Set("client_auth", mode).Set("client_ca", ca)
		for _, d := range all {
			t.Became(d, importer.Same, tls.Field("client_auth"), "")
		}
	}
}
