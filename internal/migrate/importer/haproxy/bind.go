package haproxy

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/unit"
)

// port is a port that requests of a frontend come in by.
type port struct {
	name, number string
	secure       bool
}

// binds makes ports of the lines bind.
func (t *translator) binds(f *front) {
	for _, d := range f.s.own("bind") {
		verdict, notes := importer.Same, []string{}
		note := func(text string) { verdict, notes = importer.Close, append(notes, text) }
		tls := d.has("ssl")
		made, became := 0, importer.Field{}
		for _, text := range strings.Split(d.arg(0), ",") {
			address, quic, what := bindAddress(text)
			if what == "" && strings.Contains(address, "-") {
				what = "a range of ports; write a port for each"
			}
			if what != "" {
				note(text + ": " + what)
				continue
			}
			protocol := "http"
			if tls || quic {
				protocol = "https"
			}
			if quic {
				protocol = "http3"
			}
			p := t.port(address, protocol)
			made++
			became = became.Or(t.Ports.Field(p.name))
			t.bindOptions(d, t.Ports.Object(p.name), address, note)
			t.portLimits(f.s, t.Ports.Object(p.name))
			if !slices.ContainsFunc(f.ports, func(o *port) bool { return o.name == p.name }) {
				f.ports = append(f.ports, p)
			}
		}
		if tls {
			t.certificates(d, note)
		}
		if made == 0 {
			verdict = importer.Impossible
		}
		t.Became(d, verdict, became, "%s", strings.Join(notes, "; "))
	}
}

// bindAddress returns an address as headgate writes it, which can have a range of ports, or what
// is wrong.
func bindAddress(text string) (address string, quic bool, what string) {
	for _, prefix := range []string{"unix@", "abns@", "fd@", "sockpair@", "uxst@", "/"} {
		if strings.HasPrefix(text, prefix) {
			return "", false, "ports are addresses of IP"
		}
	}
	v6 := false
	if how, rest, ok := strings.Cut(text, "@"); ok {
		quic, v6 = strings.HasPrefix(how, "quic"), strings.HasSuffix(how, "6")
		text = rest
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", false, "the address has no port"
	}
	host, number := strings.Trim(text[:i], "[]"), text[i+1:]
	switch {
	case host == "::":
	case v6 && (host == "" || host == "*"):
		host = "::"
	case host == "" || host == "*":
		host = "0.0.0.0"
	}
	a, err := netip.ParseAddr(host)
	number, last, several := strings.Cut(number, "-")
	n, e := strconv.ParseUint(number, 10, 16)
	switch {
	case err != nil:
		return "", false, "an address by name or variable; write its IP address"
	case e != nil || n == 0:
		return "", false, "not the number of a port"
	}
	address = netip.AddrPortFrom(a, uint16(n)).String()
	if !several {
		return address, quic, ""
	}
	var r unit.AddressRange
	if err := r.UnmarshalText([]byte(address + "-" + last)); err != nil {
		return "", false, err.Error()
	}
	return r.String(), quic, ""
}

// port returns the port with an address, which is made if it is new.
func (t *translator) port(address, protocol string) *port {
	number := address[strings.LastIndexByte(address, ':')+1:]
	p := &port{number: number, secure: protocol != "http"}
	key := address + " " + protocol
	if p.name = t.portNames[key]; p.name != "" {
		return p
	}
	wish := map[string]string{"http": "web", "https": "websecure", "http3": "quic"}[protocol]
	if number != map[string]string{"http": "80", "https": "443", "http3": "443"}[protocol] {
		wish += "-" + number
	}
	p.name = importer.Unused(t.Ports, wish, "port")
	t.portNames[key] = p.name
	t.Ports.Set(p.name, importer.NewObject().Set("address", address).Set("protocol", protocol))
	return p
}

// bindOptions sets what else a line bind says.
func (t *translator) bindOptions(d *directive, o importer.Object, address string, note func(string)) {
	tls := importer.NewObject()
	for i := 2; i < len(d.words); i++ {
		w := d.words[i]
		value := d.arg(i)
		switch w {
		case "ssl", "transparent", "v4v6", "v6only", "tfo", "defer-accept", "no-sslv3", "no-tlsv10", "no-tlsv11", "no-tls-tickets", "strict-sni", "allow-0rtt", "no-alpn":
		case "alpn", "npn", "crt", "crt-list", "ca-file", "verify", "name", "nice", "process", "thread", "level", "mode", "user", "group", "uid", "gid", "id", "backlog", "ciphers", "ciphersuites", "curves", "ecdhe", "tls-ticket-keys", "shards", "mss", "tcp-ut", "proto":
			i++
		case "maxconn":
			i++
		case "ssl-min-ver":
			i++
			if value == "TLSv1.3" {
				tls.Set("min_version", "1.3")
			}
		case "accept-proxy":
			note("name the load balancers that send the PROXY header: proxy_protocol: {trusted: […]} at the port")
			t.Check("%s:%d: accept-proxy needs the addresses of the load balancers: proxy_protocol of the port at %s", d.File, d.Line, address)
		case "interface", "namespace":
			i++
			note("the option " + w + " is left out")
		default:
			note("the option " + w + " is left out")
		}
	}
	if d.after("proto") == "h2" && !d.has("ssl") && o.Text("protocol") == "http" {
		o.Set("h2c", true)
		note("HTTP/1.1 is accepted, too")
	}
	if n, err := strconv.Atoi(d.after("maxconn")); err == nil && n > 0 {
		o.Set("limits", importer.NewObject().Set("max_connections", n))
	}
	if auth := d.after("verify"); auth == "required" || auth == "optional" {
		tls.Set("client_auth", auth).Set("client_ca", t.pathIn(t.caBase, d, d.after("ca-file")))
	}
	if tls.Len() > 0 && d.has("ssl") {
		o.Set("tls", tls.Flow())
	}
}

// portLimits are the times and bounds of clients.
func (t *translator) portLimits(s *section, o importer.Object) {
	limits := o.Object("limits")
	if limits.Empty() {
		limits = importer.NewObject()
	}
	for _, l := range []struct{ name, field, note string }{
		{"timeout http-request", "header_timeout", ""}, {"timeout http-keep-alive", "keep_alive_timeout", ""},
		{"timeout client", "body_idle_timeout", "for bodies of requests; write_idle_timeout bounds the responses"}, {"timeout tunnel", "tunnel_idle_timeout", ""},
	} {
		for _, d := range s.find(l.name) {
			v, ok := duration(d.arg(1))
			if !ok {
				t.AddVerdict(d, importer.Impossible, "not a time")
				continue
			}
			limits.Set(l.field, v)
			t.Became(d, verdictOf(l.note), limits.Field(l.field), "%s", strings.TrimSuffix("limits: {"+l.field+"} of the port; "+l.note, "; "))
		}
	}
	for _, d := range s.find("maxconn") {
		if n, err := strconv.Atoi(d.arg(0)); err == nil && n > 0 {
			limits.Set("max_connections", n)
		}
		t.Became(d, importer.Close, limits.Field("max_connections"), "for each port of the frontend")
	}
	if limits.Len() > 0 {
		o.Set("limits", limits)
	}
}

// certificates translates the certificates of a line bind, and returns the name of the first
// of them.
func (t *translator) certificates(d *directive, note func(string)) (first string) {
	taken := 0
	add := func(name string) {
		n, at := t.certificate(d, name)
		if taken += n; first == "" {
			first = at
		}
	}
	for i, w := range d.words {
		if i+1 >= len(d.words) {
			break
		}
		switch w {
		case "crt":
			add(d.words[i+1])
		case "crt-list":
			lines, err := t.entries(d, d.words[i+1])
			if err != nil {
				note("the list cannot be read; name its certificates")
				t.Check("%s:%d: the list %s cannot be read: name its certificates", d.File, d.Line, d.words[i+1])
			}
			for _, l := range lines {
				add(l[0])
			}
			if len(lines) > 0 {
				note("certificates are chosen by the names in them, not by filters of the list")
			}
		}
	}
	if taken == 0 {
		t.Check("%s:%d: the port has no certificate: name one in certificates, or let acme order it", d.File, d.Line)
	}
	return first
}

// certificate translates a PEM file, or those of a directory. It returns how many, and the
// name of the first.
func (t *translator) certificate(d *directive, name string) (n int, first string) {
	path := t.pathIn(t.crtBase, d, name)
	if _, err := t.read(path); err != nil {
		if entries, e := t.glob(filepath.Join(path, "*.pem")); e == nil && len(entries) > 0 {
			for _, one := range entries[:min(len(entries), maxFiles)] {
				if at := t.pair(one); first == "" {
					first = at
				}
			}
			return len(entries), first
		}
		t.Check("%s:%d: the certificate %s cannot be read here; headgate needs it at this name, or at another in certificates", d.File, d.Line, path)
	}
	return 1, t.pair(path)
}

// encrypted reports a key that needs a password.
func (t *translator) encrypted(path string) {
	if data, err := t.read(path); err == nil && importer.EncryptedKey(data) {
		t.Check("%s: %s", path, importer.DecryptKey)
	}
}

// pair adds a file that has certificate and key, or has the key beside it, and returns its
// name.
func (t *translator) pair(path string) string {
	key := path
	if _, err := t.read(path + ".key"); err == nil {
		key = path + ".key"
	}
	t.encrypted(key)
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for i := 0; ; i++ {
		at := importer.Unused(importer.NewObject(), name, "certificate")
		if i > 0 {
			at = fmt.Sprintf("%s-%d", at, i+1)
		}
		if o := t.Certificates.Object(at); o.Empty() {
			t.Certificates.Set(at, importer.NewObject().Set("cert_file", path).Set("key_file", key))
			return at
		} else if o.Key() == importer.NewObject().Set("cert_file", path).Set("key_file", key).Key() {
			return at
		}
	}
}

// duration returns a time of HAProxy, which is in milliseconds without a unit, as
// headgate writes it.
func duration(text string) (string, bool) { return importer.Duration(text, "ms") }
