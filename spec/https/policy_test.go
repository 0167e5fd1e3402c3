package https

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// secured returns a configuration of one port with TLS settings, whose answer
// tells who the client is.
func secured(address, settings string) string {
	return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: https, drain_timeout: 2s, tls: {%s}}}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "{client_cert_subject}"}}]}}
`, address, settings)
}

// withClients is a house that knows an authority of clients.
func withClients(t *testing.T) (*house, *authority) {
	h, a := newHouse(t), newAuthority(t, "clients' authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	put(t, filepath.Join(h.dir, "clients.pem"), a.pem())
	return h, a
}

func TestMinVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings string
		version  uint16
		ok       bool
	}{
		{"", tls.VersionTLS11, false},
		{"", tls.VersionTLS12, true},
		{"", tls.VersionTLS13, true},
		{`min_version: "1.3"`, tls.VersionTLS12, false},
		{`min_version: "1.3"`, tls.VersionTLS13, true},
	} {
		h, _ := withClients(t)
		address := testhouse.Address(t)
		h.start(secured(address, c.settings))
		conn, err := tls.Dial("tcp4", address, &tls.Config{InsecureSkipVerify: true, MinVersion: c.version, MaxVersion: c.version})
		if err == nil {
			conn.Close()
		}
		if c.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "protocol version not supported") {
			t.Errorf("%q with %s: got %v, want success %v", c.settings, tls.VersionName(c.version), err, c.ok)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	h, a := withClients(t)
	foreign := newAuthority(t, "foreign authority")
	good, wrong, old := a.person("anna"), foreign.person("eve"), a.person("otto", expired)
	server := a.host([]string{"b.example"}) // may not be shown by a client
	for _, c := range []struct {
		policy string
		cert   *tls.Certificate
		want   string // what the answer tells of the client, or the alert
	}{
		{"off", nil, ""},
		{"off", &good, ""},
		{"off", &wrong, ""},
		{"optional", nil, ""},
		{"optional", &good, "CN=anna"},
		{"optional", &wrong, "alert: unknown certificate authority"},
		{"optional", &old, "alert: expired certificate"},
		{"required", nil, "alert: certificate required"},
		{"required", &good, "CN=anna"},
		{"required", &wrong, "alert: unknown certificate authority"},
		{"required", &old, "alert: expired certificate"},
		{"required", &server, "alert: bad certificate"},
	} {
		for _, proto := range []string{"http/1.1", "h2"} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				name := "none"
				if c.cert != nil {
					name = c.cert.Leaf.Subject.CommonName
				}
				t.Run(fmt.Sprintf("%s/%s/%s/%s", c.policy, name, proto, tls.VersionName(version)), func(t *testing.T) {
					h.withPolicy(t, c.policy)
					d := dialed{address: h.address, name: "a.example", proto: proto, max: version, cert: c.cert}
					got := d.request()
					if alert, refused := strings.CutPrefix(c.want, "alert: "); refused {
						if version == tls.VersionTLS12 && c.cert == nil {
							alert = "handshake failure" // TLS 1.2 has no other word for it
						}
						// Go's client does not always say why a connection of HTTP/2 has
						// ended.
						if silent := proto == "h2" && strings.Contains(got, "client conn could not be established"); !silent && !strings.Contains(got, "remote error: tls: "+alert) {
							t.Errorf("got %q, want the alert %q", got, alert)
						}
					} else if got != c.want {
						t.Errorf("got %q, want %q", got, c.want)
					}
				})
			}
		}
	}
}

// request makes a connection and a request, and returns the body of the answer or
// what went wrong. Over TLS 1.3 a client hears only then that it is refused.
func (d dialed) request() string {
	c, err := d.dial()
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	got, err := c.get(d.name, "/")
	if err != nil {
		return err.Error()
	}
	return got.body
}

// withPolicy gives the house a port with a client_auth, if it has it not.
func (h *house) withPolicy(t *testing.T, policy string) {
	t.Helper()
	if h.policy == policy {
		return
	}
	settings := "client_auth: " + policy + ", client_ca: clients.pem"
	if policy == "off" {
		settings = `client_auth: "off"`
	}
	if h.address == "" {
		h.address = testhouse.Address(t)
		h.start(secured(h.address, settings))
	} else {
		h.apply(secured(h.address, settings))
	}
	h.policy = policy
}

// A connection that was opened when nobody had to show a certificate does not
// outlive that.
func TestOpenConnectionsFollowAStricterPolicy(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"http/1.1", "h2"} {
		h, a := withClients(t)
		h.withPolicy(t, "off")
		d := dialed{address: h.address, name: "a.example", proto: proto}
		c := d.must(t)
		c.want(t, "a.example", "/", 200, "")
		h.withPolicy(t, "optional")
		if c.h2 != nil {
			for c.h2.Err() == nil && c.h2.Available() > 0 {
				if _, err := c.get("a.example", "/"); err != nil {
					break
				}
			}
		} else if got, err := c.get("a.example", "/"); err == nil && !got.last {
			t.Errorf("%s: the connection goes on after a change of client_auth", proto)
		}
		good := a.person("anna")
		d.cert = &good
		if got := d.request(); got != "CN=anna" {
			t.Errorf("%s: got %q, want CN=anna", proto, got)
		}
	}
}

// Sessions outlive changes of everything but of what clients have to show.
func TestSessionsResume(t *testing.T) {
	t.Parallel()
	h, a := withClients(t)
	good := a.person("anna")
	h.withPolicy(t, "off")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		d := dialed{address: h.address, name: "a.example", max: version, cert: &good, cache: tls.NewLRUClientSessionCache(8)}
		resumes := func(want bool, when, body string) {
			t.Helper()
			c, err := d.dial()
			if err != nil {
				t.Fatalf("%s, %s: %v", tls.VersionName(version), when, err)
			}
			defer c.Close()
			if got := c.ConnectionState().DidResume; got != want {
				t.Errorf("%s, %s: resumed %v, want %v", tls.VersionName(version), when, got, want)
			}
			c.want(t, "a.example", "/", 200, body) // reads the ticket, too
		}
		h.withPolicy(t, "off")
		resumes(false, "the first time", "")
		resumes(true, "the second time", "")
		h.apply(strings.Replace(secured(h.address, `client_auth: "off"`), "key_file: main.key}}", "key_file: main.key}, more: {cert_file: main.pem, key_file: main.key}}", 1))
		h.policy = ""
		resumes(true, "after another certificate", "")
		h.apply(secured(h.address, `client_auth: "off", default_certificate: main`))
		resumes(true, "after a change of default_certificate", "")
		h.withPolicy(t, "required")
		resumes(false, "when client_auth is required", "CN=anna")
		resumes(true, "the second time when client_auth is required", "CN=anna")
		h.withPolicy(t, "optional")
		resumes(false, "when client_auth is optional", "CN=anna")
		h.withPolicy(t, "off")
		resumes(false, "when client_auth is off again", "")
	}
}

// The authorities are read again with the configuration, and sessions that the
// old ones vouched for end with them.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	t.Parallel()
	h, a := withClients(t)
	next := newAuthority(t, "next authority")
	old, fresh := a.person("anna"), next.person("berta")
	h.withPolicy(t, "required")
	d := dialed{address: h.address, name: "a.example", cert: &old, cache: tls.NewLRUClientSessionCache(8)}
	if got := d.request(); got != "CN=anna" {
		t.Fatalf("got %q, want CN=anna", got)
	}
	put(t, filepath.Join(h.dir, "clients.pem"), next.pem())
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := d.request(); !strings.Contains(got, "unknown certificate authority") {
		t.Errorf("a client of the old authority gets %q", got)
	}
	d.cert = &fresh
	if got := d.request(); got != "CN=berta" {
		t.Errorf("got %q, want CN=berta", got)
	}
}
