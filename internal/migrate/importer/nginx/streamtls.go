package nginx

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// streamEffective returns the directives with a name that hold in a server of the stream
// block: its own, else those of the block.
func (t *translator) streamEffective(d *directive, name string) []*directive {
	if own := d.find(name); len(own) > 0 {
		return own
	}
	return t.stream.find(name)
}

// streamClientTLS returns how a TCP proxy terminates TLS for a server with listen … ssl.
func (t *translator) streamClientTLS(d *directive, name string) importer.Object {
	tls := importer.NewObject()
	certs, keys := t.streamEffective(d, "ssl_certificate"), t.streamEffective(d, "ssl_certificate_key")
	for i, c := range certs {
		if i >= len(keys) {
			t.AddVerdict(c, importer.Impossible, "the certificate has no key beside it")
			continue
		}
		if at := t.certificatePair(c, keys[i], name, i); at != "" && !tls.Has("default_certificate") {
			tls.Set("default_certificate", at) // nginx shows it whatever name is requested
		}
	}
	if !tls.Has("default_certificate") {
		t.Check("%s:%d: the TCP proxy %s has no certificate: name one in certificates", d.File, d.Line, name)
	}
	for _, p := range t.streamEffective(d, "ssl_protocols") {
		became := importer.ByItself()
		if slices.Contains(p.args, "TLSv1.3") && !slices.Contains(p.args, "TLSv1.2") {
			became = tls.Set("min_version", "1.3").Field("min_version")
		}
		t.Became(p, importer.Same, became, "TLS 1.2 and later; older versions are not spoken")
	}
	for _, p := range t.streamEffective(d, "ssl_alpn") {
		t.Became(p, importer.Same, tls.Set("alpn", p.args).Field("alpn"), "")
	}
	t.streamClientAuth(d, name, tls)
	return tls.Flow()
}

// streamClientAuth requests client certificates if the server does.
func (t *translator) streamClientAuth(d *directive, name string, tls importer.Object) {
	verify, ca := t.streamEffective(d, "ssl_verify_client"), t.streamEffective(d, "ssl_client_certificate")
	how := "off"
	if len(verify) > 0 {
		how = verify[0].arg(0)
	}
	mode := map[string]string{"on": "required", "optional": "optional"}[how]
	for _, p := range slices.Concat(verify, ca) {
		switch {
		case how == "off":
			t.AddVerdict(p, importer.Ignored, "no client certificate is requested")
		case mode == "" || len(ca) == 0:
			t.AddVerdict(p, importer.Impossible, "client certificates are verified with one file of authorities: tls: {client_auth: required, client_ca: …}")
		default:
			tls.Set("client_auth", mode).Set("client_ca", t.path(ca[0].arg(0)))
			t.Became(p, importer.Same, tls.Field("client_auth"), "")
		}
	}
	if how != "off" && !tls.Has("client_auth") {
		t.Check("TCP proxy %s: its clients had to show a certificate (ssl_verify_client %s); here none is requested: set client_auth and client_ca in tls", name, how)
	}
}

// streamServerTLS returns the TLS settings for connections to servers, empty if proxy_ssl is
// not on.
func (t *translator) streamServerTLS(d *directive) importer.Object {
	on := t.streamEffective(d, "proxy_ssl")
	if len(on) == 0 || on[0].arg(0) != "on" {
		return importer.Object{}
	}
	tls := importer.NewObject()
	verify := t.streamEffective(d, "proxy_ssl_verify")
	verified := len(verify) > 0 && verify[0].arg(0) == "on"
	if !verified {
		tls.Set("insecure_skip_verify", true)
		t.Check("%s:%d: nginx did not verify the certificates of the servers, and headgate does not either: remove insecure_skip_verify if they are valid", on[0].File, on[0].Line)
	}
	for _, p := range t.streamEffective(d, "proxy_ssl_trusted_certificate") {
		became := importer.ByItself()
		if verified {
			became = tls.Set("ca_file", t.path(p.arg(0))).Field("ca_file")
		}
		t.Became(p, importer.Same, became, "")
	}
	for _, p := range t.streamEffective(d, "proxy_ssl_name") {
		if strings.Contains(p.arg(0), "$") {
			t.AddVerdict(p, importer.Impossible, "server_name is a fixed name")
			continue
		}
		t.Became(p, importer.Same, tls.Set("server_name", p.arg(0)).Field("server_name"), "")
	}
	became := importer.ByItself()
	if !verified {
		became = tls.Field("insecure_skip_verify")
	}
	for _, p := range slices.Concat(on, verify) {
		t.Became(p, importer.Same, became, "tls of each server")
	}
	return tls.Flow()
}

// certificatePair adds a certificate and its key, and returns the name under certificates, ""
// if they cannot be translated. i is its place among those of a server, whose name is name.
func (t *translator) certificatePair(c, k *directive, name string, i int) string {
	cert, key := t.path(c.arg(0)), t.path(k.arg(0))
	if data, err := t.read(key); err == nil && importer.EncryptedKey(data) {
		t.AddVerdict(k, importer.Impossible, importer.DecryptKey)
		t.Check("%s:%d: %s: %s", k.File, k.Line, key, importer.DecryptKey)
	}
	if strings.HasPrefix(c.arg(0), "data:") || strings.HasPrefix(k.arg(0), "engine:") || strings.Contains(c.arg(0), "$") {
		t.AddVerdict(c, importer.Impossible, "a certificate has to be in a file with a fixed name")
		return ""
	}
	t.Became(c, importer.Same, importer.Value("cert_file", cert), "certificates are chosen by the names in them")
	t.Became(k, importer.Same, importer.Value("key_file", key), "")
	pair := [2]string{cert, key}
	if at := t.pairs[pair]; at != "" {
		return at // another server has it
	}
	at := name
	if i > 0 {
		at = fmt.Sprintf("%s-%d", name, i+1)
	}
	t.pairs[pair] = at
	t.Certificates.Set(at, importer.NewObject().Set("cert_file", cert).Set("key_file", key))
	return at
}
