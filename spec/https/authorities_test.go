package https

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// TestMissingAuthoritiesAtTheStartFailClosed starts without the files of authorities:
// no client is trusted, everything else is served, and a reload takes the files up. A
// change that needs a missing file is refused.
func TestMissingAuthoritiesAtTheStartFailClosed(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	server := secureServer(t, &tls.Config{Certificates: []tls.Certificate{a.host([]string{"x"}, forAddress("127.0.0.1"))}}, sayProto)
	required, optional, plain := testhouse.Address(t), testhouse.Address(t), testhouse.Address(t)
	text := fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: %q}
ports:
  required: {address: %q, protocol: https, tls: {client_auth: required, client_ca: ca.pem}}
  optional: {address: %q, protocol: https, tls: {client_auth: optional, client_ca: ca.pem}}
  plain: {address: %q, protocol: http}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies:
  all:
    routes:
      - fixed_response: {status: 200, body: "here {client_cert_subject}"}
      - {path: /up, servers: [{url: "https://%s", tls: {ca_file: ca.pem}}]}
`, filepath.Join(h.dir, "access.log"), required, optional, plain, server)
	h.start(text)
	h.log.await(t, "authorities cannot be used", "port=required", "every client certificate is rejected")
	h.log.await(t, "authorities cannot be used", "upstream_tls", server)
	f := &inFront{house: h, address: plain}
	person := a.person("ann")
	shows := func(address string, cert *tls.Certificate) string {
		return dialed{address: address, name: "a.example", cert: cert}.request()
	}
	for what, got := range map[string]string{"required, with a certificate": shows(required, &person), "required, without": shows(required, nil), "optional, with": shows(optional, &person)} {
		if strings.Contains(got, "here") {
			t.Errorf("%s: got %q, want a refusal", what, got)
		}
	}
	if got := shows(optional, nil); !strings.HasPrefix(got, "here") {
		t.Errorf("optional, without: got %q", got)
	}
	if status, body := f.get("/"); status != 200 {
		t.Errorf("the plain port answers %d %q", status, body)
	}
	if status, _ := f.get("/up/"); status != 502 {
		t.Errorf("a server whose authority is missing answers %d, want 502", status)
	}
	if reason, _ := f.logged("/up/"); reason != "upstream_tls" {
		t.Errorf("the reason is %q", reason)
	}
	put(t, h.file, []byte(strings.Replace(text, "here", "there", 1)))
	if err := h.Reload(); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("a change with missing authorities ended with %v", err)
	}
	put(t, filepath.Join(h.dir, "ca.pem"), a.pem())
	h.apply(text)
	if got := shows(required, &person); !strings.Contains(got, "ann") {
		t.Errorf("with the file, required: got %q", got)
	}
	if status, body := f.get("/up/"); status != 200 {
		t.Errorf("with the file, the server answers %d %q", status, body)
	}
	other := newAuthority(t, "another")
	put(t, filepath.Join(h.dir, "ca.pem"), other.pem())
	h.apply(text)
	if status, _ := f.get("/up/?other"); status != 502 {
		t.Errorf("with another authority in the file, the server answers %d, want 502", status)
	}
}
