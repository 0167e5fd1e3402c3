package traefik

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// entry is an entry point: a port of headgate, or two where it serves HTTP/3 too.
type entry struct {
	name    string
	address string // ip:port
	udp     bool
	secure  bool // it has TLS by itself, or a router on it has
	http3   bool
	toHTTPS bool
	n       *node
}

// keyPair is a certificate that was found.
type keyPair struct{ name, chain, key string }

// static goes through the static configuration.
func (t *translator) static() {
	points := t.root.get("entryPoints")
	for _, n := range points.children() {
		t.entryPoint(n)
	}
	if len(t.names) == 0 {
		t.Check("the static configuration, which has the entry points, was not given: ports 80 and 443 were assumed; import traefik.yml too")
		t.addEntry(&entry{name: "web", address: "0.0.0.0:80", n: points})
		t.addEntry(&entry{name: "websecure", address: "0.0.0.0:443", secure: true, n: points})
	}
	for _, n := range t.root.get("certificatesResolvers").children() {
		t.resolver(n)
	}
	for i, n := range t.root.get("tls", "certificates").list {
		t.tlsCertificate(n, fmt.Sprintf("tls-%d", i+1))
	}
	if def := t.root.get("tls", "stores", "default", "defaultCertificate"); def.is() {
		t.tlsCertificate(def, "default")
		t.Check("a default certificate is set: name it in tls.default_certificate of the https ports")
	}
	for _, n := range t.root.get("providers").children() {
		if name := strings.ToLower(n.name()); name != "file" && name != "docker" && name != "providersthrottleduration" && name != "precedence" {
			t.Check("the routers that the provider %s finds are not in the files that were given: give the address of Traefik's API, which has them", n.name())
		}
	}
	t.tls = t.options(t.root.get("tls", "options", "default"))
	for _, pair := range t.keys {
		t.Certificates.Set(pair.name, importer.NewObject().Set("cert_file", pair.chain).Set("key_file", pair.key))
	}
}

// tlsOf returns the TLS options of an entry point's port: those that all of its routers
// name, the default ones otherwise.
func (t *translator) tlsOf(e *entry) importer.Object {
	names := map[string]bool{}
	for _, r := range t.routers {
		if r.tls && slices.Contains(r.entries, e) {
			name, _, _ := strings.Cut(r.n.get("tls", "options").text(), "@")
			names[name] = true
		}
	}
	for name := range names {
		n := t.root.get("tls", "options", name)
		switch {
		case name == "" || name == "default" || !n.is():
		case len(names) > 1:
			t.Check("TLS options %s: a port has one set of options, and its routers name several: set tls.min_version and tls.client_auth of the https port by hand", name)
		default:
			return t.options(n)
		}
	}
	return t.tls
}

// options reads TLS options, which are settings of the https ports.
func (t *translator) options(n *node) importer.Object {
	tls := importer.NewObject()
	if !n.is() {
		return tls
	}
	if v := n.get("minVersion"); v.is() {
		became := importer.ByItself()
		if v.text() == "VersionTLS13" {
			became = tls.Set("min_version", "1.3").Field("min_version")
		}
		t.becameAll(v, importer.Same, became, "tls.min_version of the https ports; TLS 1.2 is the oldest")
	}
	files, kind := n.get("clientAuth", "caFiles").texts(), n.get("clientAuth", "clientAuthType")
	auth := map[string]string{"RequireAndVerifyClientCert": "required", "VerifyClientCertIfGiven": "optional"}[kind.text()]
	if auth != "" && len(files) == 1 {
		tls.Set("client_auth", auth).Set("client_ca", files[0])
		t.becameAll(n.get("clientAuth"), importer.Same, tls.Field("client_auth"), "tls.client_auth and client_ca of the https ports")
	} else if n.get("clientAuth").is() {
		t.Check("clients had to show a certificate: set tls.client_auth and client_ca of the https ports by hand")
		t.sayAll(n.get("clientAuth"), importer.Impossible, "a port requests certificates of one file of authorities: set tls.client_auth and client_ca of the https ports")
	}
	for _, name := range []string{"cipherSuites", "curvePreferences", "alpnProtocols", "sniStrict", "maxVersion", "preferServerCipherSuites", "disableSessionTickets"} {
		t.sayAll(n.get(name), importer.Ignored, "TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only")
	}
	return tls
}

func (t *translator) addEntry(e *entry) {
	t.entries[strings.ToLower(e.name)] = e
	t.names = append(t.names, strings.ToLower(e.name))
}

func (t *translator) entryPoint(n *node) {
	e := &entry{name: n.name(), n: n}
	address, protocol, _ := strings.Cut(n.get("address").text(), "/")
	host, port, err := net.SplitHostPort(address)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || number == 0 {
		t.sayAll(n, importer.Impossible, "the address is not one of a port")
		t.Check("entry point %s has an address that cannot be used: %q", e.name, n.get("address").text())
		return
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
		t.sayAll(n.get("address"), importer.Impossible, "a port listens on an address, not on a name")
		host = "0.0.0.0"
	}
	e.address, e.udp = net.JoinHostPort(host, port), protocol == "udp"
	t.becameAll(n.get("address"), importer.Same, importer.Value("address", e.address), "a port")
	e.secure = n.get("http", "tls").is() || port == "443"
	e.http3 = n.get("http3").is()
	t.becameAll(n.get("http", "tls"), importer.Same, importer.Value("protocol", "https"), "an https port")
	t.becameAll(n.get("http3"), importer.Same, importer.Value("protocol", "http3"), "a port with protocol http3 beside it")
	if to := n.get("http", "redirections", "entryPoint"); to.is() {
		e.toHTTPS = true
		t.becameAll(to, importer.Same, importer.Value("redirect_http_to_https", true), "redirect_http_to_https on the proxies: 301 for GET, 308 for others")
	}
	if trusted := n.get("forwardedHeaders"); trusted.is() {
		if list := trusted.get("trustedIPs").texts(); len(list) > 0 {
			t.becameAll(trusted, importer.Same, importer.Value("trusted", list[0]), "client_ip of the proxies")
		} else if trusted.get("insecure").on() {
			t.sayAll(trusted, importer.Impossible, "trusting all peers is not possible: name the proxies in front in client_ip")
			t.Check("entry point %s trusts forwarded headers of all peers: name the proxies in front in client_ip", e.name)
		}
	}
	t.addEntry(e)
}

// writePorts makes the entry points ports. It comes after the routers, which say on
// which of them TLS is spoken.
func (t *translator) writePorts() {
	for _, name := range t.names {
		e := t.entries[name]
		if e.udp || t.onlyTCP(e) {
			continue
		}
		protocol := "http"
		if e.secure {
			protocol = "https"
		}
		p := importer.NewObject().Set("address", e.address).Set("protocol", protocol)
		if trusted := e.n.get("proxyProtocol", "trustedIPs").texts(); len(trusted) > 0 {
			p.Set("proxy_protocol", importer.NewObject().Set("trusted", trusted).Flow())
			t.becameAll(e.n.get("proxyProtocol"), importer.Same, p.Field("proxy_protocol"), "proxy_protocol of the port")
		}
		if tls := t.tlsOf(e); e.secure && tls.Len() > 0 {
			p.Set("tls", tls.Flow())
		}
		t.Ports.Set(e.name, p)
		if e.http3 && e.secure {
			t.Ports.Set(e.name+"-http3", importer.NewObject().Set("address", e.address).Set("protocol", "http3"))
		}
	}
}

// resolver makes a certificate resolver an ACME entry.
func (t *translator) resolver(n *node) {
	a := n.get("acme")
	if !a.is() {
		t.sayAll(n, importer.Impossible, "only certificates by ACME are possible")
		return
	}
	o := importer.NewObject().Set("directory", directoryOf(a.get("caServer").text()))
	t.becameAll(a.get("caServer"), importer.Same, o.Field("directory"), "directory")
	if email := a.get("email").text(); email != "" {
		o.Set("email", email)
		t.becameAll(a.get("email"), importer.Same, o.Field("email"), "email")
	}
	t.sayAll(a.get("storage"), importer.Ignored, "certificates are kept in the state directory; import acme.json to keep the present ones")
	switch {
	case a.get("dnsChallenge").is():
		provider := a.get("dnsChallenge", "provider").text()
		o.Set("challenge", "dns-01").Set("dns", importer.NewObject().Set("provider", provider))
		t.becameAll(a.get("dnsChallenge", "provider"), importer.Close, o.Field("dns"), "give dns.credentials: Traefik reads them from its environment")
		t.Check("acme.%s: set dns.credentials for %s; Traefik had them in its environment", n.name(), provider)
		if list := a.get("dnsChallenge", "resolvers").texts(); len(list) > 0 {
			o.Set("resolvers", list)
			t.becameAll(a.get("dnsChallenge", "resolvers"), importer.Same, o.Field("resolvers"), "resolvers")
		}
	case a.get("tlsChallenge").is():
		o.Set("challenge", "tls-alpn-01")
		t.becameAll(a.get("tlsChallenge"), importer.Same, o.Field("challenge"), "challenge")
	case a.get("httpChallenge").is():
		o.Set("challenge", "http-01")
		t.becameAll(a.get("httpChallenge"), importer.Same, o.Field("challenge"), "challenge; it is answered on every http port")
	}
	if profile := a.get("profile").text(); profile != "" {
		o.Set("profile", profile)
		t.becameAll(a.get("profile"), importer.Same, o.Field("profile"), "profile")
	}
	if chain := a.get("preferredChain").text(); chain != "" {
		o.Set("preferred_chain", chain)
		t.becameAll(a.get("preferredChain"), importer.Same, o.Field("preferred_chain"), "preferred_chain")
	}
	if eab := a.get("eab"); eab.is() {
		o.Set("eab", importer.NewObject().Set("key_id", eab.get("kid").text()).Set("hmac_key", eab.get("hmacEncoded").text()))
		t.becameAll(eab, importer.Same, o.Field("eab"), "eab")
	}
	t.sayAll(a.get("keyType"), importer.Ignored, "key_type is ec256 unless it is set")
	t.sayAll(a.get("certificatesDuration"), importer.Ignored, "the authority says when to renew (ARI)")
	t.ACME.Set(n.name(), o)
}

func directoryOf(server string) string {
	switch {
	case server == "", strings.Contains(server, "acme-v02.api.letsencrypt.org"):
		return "letsencrypt"
	case strings.Contains(server, "acme-staging-v02.api.letsencrypt.org"):
		return "letsencrypt-staging"
	case strings.Contains(server, "acme.zerossl.com"):
		return "zerossl"
	case strings.Contains(server, "dv.acme-v02.api.pki.goog"):
		return "google"
	}
	return server
}

func (t *translator) tlsCertificate(n *node, name string) {
	chain, key := n.get("certFile").text(), n.get("keyFile").text()
	if chain == "" || key == "" || strings.Contains(chain, "-----BEGIN") {
		t.sayAll(n, importer.Impossible, "a certificate needs the names of two files")
		return
	}
	for _, file := range []string{chain, key} {
		if t.exists != nil && !t.exists(file) {
			t.sayAll(n, importer.Impossible, "%s is not there; Traefik goes on without the certificate, too", file)
			t.Check("certificate %s was left out: %s is not there; add it under certificates", name, file)
			return
		}
	}
	t.keys = append(t.keys, keyPair{name, chain, key})
	t.becameAll(n.get("certFile"), importer.Same, importer.Value("cert_file", chain), "certificates.%s", name)
	t.becameAll(n.get("keyFile"), importer.Same, importer.Value("key_file", key), "certificates.%s", name)
	t.sayAll(n.get("stores"), importer.Ignored, "there is one store")
}

// readStorage imports the certificates of acme.json: they are written beside the
// document, so that no host is without one until its first order.
func (t *translator) readStorage(name string, data []byte) error {
	var resolvers map[string]struct {
		Certificates []struct {
			Domain struct {
				Main string   `json:"main"`
				SANs []string `json:"sans"`
			} `json:"domain"`
			Certificate string `json:"certificate"`
			Key         string `json:"key"`
		} `json:"Certificates"`
	}
	if err := json.Unmarshal(data, &resolvers); err != nil {
		return fmt.Errorf("%s: not an acme.json of Traefik 2 or 3: %w", name, err)
	}
	for resolver, r := range resolvers {
		for _, c := range r.Certificates {
			at := newNode(name, 1, resolver)
			at.value = c.Domain.Main
			chain, err1 := base64.StdEncoding.DecodeString(c.Certificate)
			key, err2 := base64.StdEncoding.DecodeString(c.Key)
			if err1 != nil || err2 != nil || c.Domain.Main == "" {
				t.AddVerdict(at, importer.Impossible, "the certificate cannot be decoded")
				continue
			}
			id := "acme-" + strings.NewReplacer("*", "wildcard", ":", "-").Replace(c.Domain.Main)
			pair := keyPair{id, t.Report.Keep(id+".pem", chain), t.Report.Keep(id+".key", key)}
			t.keys = append(t.keys, pair)
			t.Became(at, importer.Same, importer.Value("cert_file", pair.chain), "certificates.%s", id)
		}
	}
	return nil
}
