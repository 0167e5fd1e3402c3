package https

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/certs"
	"headgate/internal/testhouse"
)

// twoHosts is a configuration with two certificates.
func twoHosts(address string) string {
	return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: https}}
certificates:
  a: {cert_file: a.pem, key_file: a.key}
  b: {cert_file: b.pem, key_file: b.key}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "{host}"}}]}}
`, address)
}

// Files that change are taken up while connections are open, and those that are
// wrong are not: the certificate before is kept and the log says why.
func TestFilesThatChange(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "a", a.host([]string{"a.example"}))
	keep(t, h.dir, "b", a.host([]string{"b.example"}))
	address := testhouse.Address(t)
	h.start(twoHosts(address))
	h1 := dialed{address: address, name: "a.example"}.must(t)
	h2 := dialed{address: address, name: "a.example", proto: "h2"}.must(t)
	leaf := func(name string) *x509.Certificate {
		return dialed{address: address, name: name}.must(t).ConnectionState().PeerCertificates[0]
	}
	before, other := leaf("a.example"), leaf("b.example")

	keep(t, h.dir, "a", a.host([]string{"a.example", "new.example"}))
	keep(t, h.dir, "b", a.host([]string{"b.example"}, expired))
	h.log.await(t, "certificate loaded", "certificate=a")
	h.log.await(t, "cannot load certificate, keeping the previous one", "certificate=b", "expired on")
	if got := leaf("a.example"); got.Equal(before) {
		t.Error("a new connection gets the old certificate")
	}
	if got := leaf("new.example").DNSNames; len(got) != 2 {
		t.Errorf("for a name that has come new: a certificate for %v", got)
	}
	if got := leaf("b.example"); !got.Equal(other) {
		t.Error("an expired certificate was taken up")
	}
	for _, c := range []*client{h1, h2} {
		c.want(t, "a.example", "/", 200, "a.example")
		c.want(t, "new.example", "/", 200, "new.example") // the same certificate now
	}
	for _, s := range h.Plan().Certificates() {
		if bad := s.Name == "b"; bad != (s.Problem != "") || s.State != certs.Valid {
			t.Errorf("status: %+v", s)
		}
	}

	// What is wrong with the files now does not keep a change from being made.
	put(t, filepath.Join(h.dir, "b.key"), []byte("no key"))
	h.apply(strings.Replace(twoHosts(address), "{host}", "{host}!", 1))
	dialed{address: address, name: "b.example"}.must(t).want(t, "b.example", "/", 200, "b.example!")
}

// A certificate whose files are wrong at the start stops nothing else: its host gets
// the self-signed one, and the log, the status and the metrics say why.
func TestABadCertificateAtTheStartStopsNothingElse(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "test authority")
	for name, c := range map[string]struct {
		spoil func(dir string)
		want  string
	}{
		"expired":   {func(dir string) { keep(t, dir, "b", a.host([]string{"b.example"}, expired)) }, "b.pem: expired on 20"},
		"wrong key": {func(dir string) { os.Rename(filepath.Join(dir, "a.key"), filepath.Join(dir, "b.key")) }, "private key does not match"},
		"missing":   {func(dir string) { os.Remove(filepath.Join(dir, "b.pem")) }, "b.pem: no such file"},
		"no key":    {func(dir string) { os.Remove(filepath.Join(dir, "b.key")) }, "b.key: no such file"},
		"directory": {func(dir string) { os.Remove(filepath.Join(dir, "b.key")); os.Mkdir(filepath.Join(dir, "b.key"), 0o700) }, "not a regular file"},
		"garbage":   {func(dir string) { put(t, filepath.Join(dir, "b.pem"), []byte("\x00\xff")) }, "b.pem"},
		"unreadable": {func(dir string) { // for root too
			os.Remove(filepath.Join(dir, "b.key"))
			os.Symlink("b.key", filepath.Join(dir, "b.key"))
		}, "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			keep(t, h.dir, "a", a.host([]string{"a.example"}))
			keep(t, h.dir, "b", a.host([]string{"b.example"}))
			address := testhouse.Address(t)
			c.spoil(h.dir)
			h.start(twoHosts(address))
			if name != "wrong key" { // which takes that of a
				dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "a.example")
			}
			bad := dialed{address: address, name: "b.example"}.must(t)
			bad.want(t, "b.example", "/", 200, "b.example")
			if got := bad.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "headgate.invalid" {
				t.Errorf("b.example gets the certificate of %s, want the self-signed one", got)
			}
			h.log.await(t, "level=ERROR", "certificate cannot be used", "certificate=b", c.want)
			for _, s := range h.Plan().Certificates() {
				if s.Name == "b" && (s.State != certs.Missing || !strings.Contains(s.Problem, c.want)) {
					t.Errorf("status: %+v, want missing and %q", s, c.want)
				}
			}
			keep(t, h.dir, "a", a.host([]string{"a.example"}))
			os.Remove(filepath.Join(h.dir, "b.key"))
			keep(t, h.dir, "b", a.host([]string{"b.example"}))
			h.log.await(t, "certificate loaded", "certificate=b")
			good := dialed{address: address, name: "b.example"}.must(t)
			if got := good.ConnectionState().PeerCertificates[0].DNSNames; len(got) != 1 || got[0] != "b.example" {
				t.Errorf("b.example gets the certificate of %v after its files were put right", got)
			}
		})
	}
}

// Another change goes through while a certificate is still bad.
func TestAChangeBesideABadCertificate(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "a", a.host([]string{"a.example"}))
	address := testhouse.Address(t)
	h.start(twoHosts(address))
	h.apply(strings.Replace(twoHosts(address), "{host}", "{host}!", 1))
	dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "a.example!")
}

// A change that names bad files is refused and leaves everything as it was.
func TestAChangeToBadFilesIsRefused(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "a", a.host([]string{"a.example"}))
	keep(t, h.dir, "b", a.host([]string{"b.example"}))
	address := testhouse.Address(t)
	good := twoHosts(address)
	h.start(good)
	c := dialed{address: address, name: "b.example"}.must(t)
	for _, bad := range []string{
		strings.Replace(good, "b.pem", "none.pem", 1),
		strings.Replace(good, "b.key", "a.key", 1),
		strings.Replace(good, "protocol: https", "protocol: https, tls: {default_certificate: nobody}", 1),
		strings.Replace(good, "protocol: https", "protocol: https, tls: {client_auth: required}", 1),
		strings.Replace(good, "protocol: https", "protocol: https, tls: {client_auth: required, client_ca: none.pem}", 1),
		strings.Replace(good, "protocol: https", "protocol: https, tls: {client_auth: required, client_ca: a.key}", 1),
		strings.Replace(good, "protocol: https", `protocol: https, tls: {min_version: "1.1"}`, 1),
	} {
		put(t, h.file, []byte(bad))
		if err := h.Reload(); err == nil || !strings.Contains(err.Error(), h.file+":") {
			t.Errorf("got %v, want a problem with its place for\n%s", err, bad)
		}
	}
	c.want(t, "b.example", "/", 200, "b.example")
	dialed{address: address, name: "b.example"}.must(t).want(t, "b.example", "/", 200, "b.example")
}

// The self-signed certificate outlives the process, and both the log and the
// port's clients know of it.
func TestSelfSigned(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	address := testhouse.Address(t)
	h.start(fmt.Sprintf("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports: {web: {address: %q, protocol: https}}\nproxies: {all: {routes: [{fixed_response: {status: 204}}]}}\n", address))
	h.log.await(t, "port has no certificate", "port=web", "self-signed")
	got := dialed{address: address}.must(t).ConnectionState().PeerCertificates[0]
	kept, err := certs.Load(filepath.Join(h.dir, "state", "keys", "self-signed.key"), filepath.Join(h.dir, "state", "keys", "self-signed.key"))
	if err != nil || !kept.Leaf.Equal(got) {
		t.Errorf("the state directory has another certificate than clients are shown, %v", err)
	}
}

// The log names the hosts of a port that no certificate fits.
func TestHostsWithoutCertificate(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "a", a.host([]string{"a.example", "*.d.example"}))
	keep(t, h.dir, "b", a.host([]string{"unused.example"}))
	text := strings.Replace(twoHosts(testhouse.Address(t)), "{all: {", `{all: {virtual_hosts: [a.example, b.example, "*.c.example", "*.d.example", x.d.example], `, 1)
	h.start(text)
	h.log.await(t, "hosts have no certificate", "port=web", `hosts="[*.c.example b.example]"`)
	quiet := h.log.String()
	h.apply(strings.Replace(text, "protocol: https", "protocol: https, tls: {default_certificate: a}", 1))
	if got := strings.TrimPrefix(h.log.String(), quiet); strings.Contains(got, "no certificate") {
		t.Errorf("with a default certificate the log says\n%s", got)
	}
}
