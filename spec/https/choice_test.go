package https

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// choices is a house with certificates of every kind.
func choices(t *testing.T, settings string) (address string, a *authority) {
	h := newHouse(t)
	a = newAuthority(t, "test authority")
	keep(t, h.dir, "exact", a.host([]string{"shop.example"}))
	keep(t, h.dir, "wild", a.host([]string{"*.example", "example"}))
	keep(t, h.dir, "other", a.host([]string{"other.test"}))
	keep(t, h.dir, "here", a.host([]string{"here.test"}, forAddress("127.0.0.1")))
	address = testhouse.Address(t)
	h.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: https%s}}
certificates:
  exact: {cert_file: exact.pem, key_file: exact.key}
  wild: {cert_file: wild.pem, key_file: wild.key}
  other: {cert_file: other.pem, key_file: other.key}
  here: {cert_file: here.pem, key_file: here.key}
proxies:
  all: {routes: [{fixed_response: {status: 200, body: "{host} {scheme}"}}]}
`, address, settings))
	return address, a
}

// respelled writes another name of the same length into the first bytes that a
// client sends, for names that crypto/tls does not ask for.
type respelled struct {
	net.Conn
	from, to string
	done     bool
}

func (r *respelled) Write(p []byte) (int, error) {
	if !r.done {
		r.done = true
		p = bytes.Replace(p, []byte(r.from), []byte(r.to), 1)
	}
	return r.Conn.Write(p)
}

// shown returns the names of the certificate that a client is shown who asks for
// a name, and why it is shown none. The handshake does not have to succeed.
func shown(t *testing.T, address, name string) (string, error) {
	t.Helper()
	nc, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	names, plain := "", strings.Repeat("x", len(name))
	cfg := &tls.Config{ServerName: plain, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
		leaf, err := x509.ParseCertificate(raw[0])
		names = strings.Join(leaf.DNSNames, " ")
		return err
	}}
	err = tls.Client(&respelled{Conn: nc, from: plain, to: name}, cfg).Handshake()
	if names != "" {
		err = nil
	}
	return names, err
}

func TestCertificateByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings, name, want string
	}{
		{"", "shop.example", "shop.example"},
		{"", "SHOP.example", "shop.example"},
		{"", "www.example", "*.example example"},
		{"", "example", "*.example example"},
		{"", "a.www.example", "headgate.invalid"},
		{"", "nobody.test", "headgate.invalid"},
		{"", "127.0.0.1", "here.test"},
		{"", "", "here.test"}, // by the address that was connected to
		{"", "10.0.0.1", "headgate.invalid"},
		{", tls: {default_certificate: other}", "nobody.test", "other.test"},
		{", tls: {default_certificate: other}", "a.www.example", "other.test"},
		{", tls: {default_certificate: other}", "shop.example", "shop.example"},
	} {
		t.Run(c.name+c.settings, func(t *testing.T) {
			address, _ := choices(t, c.settings)
			if got, err := shown(t, address, c.name); got != c.want || err != nil {
				t.Errorf("asked for %q: got a certificate for %q, %v; want %q", c.name, got, err, c.want)
			}
		})
	}
}

// A name with a trailing dot, or that is none, ends the handshake with an alert
// (RFC 6066, section 3), and nobody else notices.
func TestImpossibleNamesAreRefused(t *testing.T) {
	t.Parallel()
	address, _ := choices(t, "")
	for _, name := range []string{"shop.example.", "nobody.test."} {
		if got, err := shown(t, address, name); err == nil || !strings.Contains(err.Error(), "remote error: tls:") {
			t.Errorf("asked for %q: got a certificate for %q, %v; want an alert", name, got, err)
		}
	}
	for _, name := range []string{"a\x00b.example", "-", "*.example", "..", strings.Repeat("a.", 100) + "example"} {
		shown(t, address, name) // an answer or an alert; not the end of the world
	}
	dialed{address: address, name: "shop.example"}.must(t).want(t, "shop.example", "/", 200, "shop.example https")
}

// What clients check of a certificate holds: chain, name, and time.
func TestClientsThatVerifyAreContent(t *testing.T) {
	t.Parallel()
	address, a := choices(t, "")
	for _, name := range []string{"shop.example", "www.example", "other.test"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c, err := tls.Dial("tcp4", address, &tls.Config{ServerName: name, RootCAs: a.pool(), MinVersion: version, MaxVersion: version})
			if err != nil {
				t.Errorf("%s over %s: %v", name, tls.VersionName(version), err)
				continue
			}
			c.Close()
		}
	}
}

func TestMisdirected(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"", ", tls: {default_certificate: other}"} {
		address, _ := choices(t, settings)
		byDefault := 421
		if settings != "" {
			byDefault = 200 // nobody.test has the certificate of other.test
		}
		for _, proto := range []string{"http/1.1", "h2"} {
			t.Run(proto+settings, func(t *testing.T) {
				for _, c := range []struct {
					opened, host string
					want         int
				}{
					{"shop.example", "shop.example", 200},
					{"shop.example", "SHOP.example.:8443", 200},
					{"shop.example", "www.example", 421},
					{"www.example", "mail.example", 200},
					{"www.example", "example", 200},
					{"www.example", "shop.example", 421},
					{"other.test", "nobody.test", byDefault},
					{"nobody.test", "other.test", byDefault},
					{"nobody.test", "nothing.test", 200},
					{"", "shop.example", 200},
				} {
					cl := dialed{address: address, name: c.opened, proto: proto}.must(t)
					cl.want(t, c.host, "/", c.want, "")
					if c.want == 421 {
						// The connection is good for what it was opened for.
						cl.want(t, c.opened, "/", 200, "")
					}
				}
			})
		}
	}
}

// HTTP/2 is spoken with whom it was agreed on, HTTP/1.1 with who does not know
// how to agree, and nothing with who wants something else (RFC 7301).
func TestProtocolByALPN(t *testing.T) {
	t.Parallel()
	address, a := choices(t, "")
	for _, c := range []struct {
		offered []string
		want    string // "none" is an alert
	}{
		{nil, ""},
		{[]string{"http/1.1"}, "http/1.1"},
		{[]string{"h2"}, "h2"},
		{[]string{"http/1.1", "h2"}, "h2"},
		{[]string{"h2", "http/1.1"}, "h2"},
		{[]string{"h3", "http/1.1"}, "http/1.1"},
		{[]string{"spdy/3"}, "none"},
	} {
		conn, err := tls.Dial("tcp4", address, &tls.Config{ServerName: "shop.example", RootCAs: a.pool(), NextProtos: c.offered})
		if c.want == "none" {
			if err == nil || !strings.Contains(err.Error(), "no application protocol") {
				t.Errorf("%v: got %v, want an alert", c.offered, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.offered, err)
			continue
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("%v: got %q, want %q", c.offered, got, c.want)
		}
		if c.want != "h2" {
			cl := &client{Conn: conn, r: bufio.NewReader(conn)}
			cl.want(t, "shop.example", "/", 200, "shop.example https")
		}
		conn.Close()
	}
}

// Hybrid key exchange that holds against quantum computers is taken from clients
// that offer it, and nobody needs it.
func TestKeyExchange(t *testing.T) {
	t.Parallel()
	address, a := choices(t, "")
	for _, c := range []struct {
		offered []tls.CurveID
		want    tls.CurveID
	}{
		{nil, tls.X25519MLKEM768},
		{[]tls.CurveID{tls.X25519}, tls.X25519},
		{[]tls.CurveID{tls.CurveP256}, tls.CurveP256},
	} {
		conn, err := tls.Dial("tcp4", address, &tls.Config{ServerName: "shop.example", RootCAs: a.pool(), CurvePreferences: c.offered})
		if err != nil {
			t.Errorf("%v: %v", c.offered, err)
			continue
		}
		if got := conn.ConnectionState().CurveID; got != c.want {
			t.Errorf("%v: got %v, want %v", c.offered, got, c.want)
		}
		conn.Close()
	}
}
