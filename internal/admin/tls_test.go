package admin

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/certstest"
	"headgate/internal/control"
	"headgate/internal/testhouse"
)

// shake shakes hands with a listener and returns what it shows.
func shake(t *testing.T, address, name string) tls.ConnectionState {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", address,
		&tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState()
}

// withAdmin is a configuration with an admin listener, one port, and certificates in
// folders.
func withAdmin(admin, port string, certificates map[string]string) string {
	text := "version: 1\nadmin: " + admin + "\naccess_log: {enabled: false}\nports: {a: {address: \"" + port + "\", protocol: http}}\ncertificates:\n"
	for name, dir := range certificates {
		text += fmt.Sprintf("  %s: {cert_file: %s/%s.pem, key_file: %s/%s.key}\n", name, dir, name, dir, name)
	}
	return text
}

// made writes a certificate for a host and returns the folder.
func made(t *testing.T, name, host string) string {
	t.Helper()
	dir := t.TempDir()
	certstest.Write(t, dir, name, certstest.Sign(t, &x509.Certificate{DNSNames: []string{host}}, nil))
	return dir
}

func TestOffLoopbackTheListenerSpeaksTLS(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	_, port, _ := net.SplitHostPort(at[1])
	h := open(t, document(201, "0.0.0.0:"+port, "a "+at[0]))
	s := shake(t, at[1], "")
	if s.NegotiatedProtocol != "h2" {
		t.Errorf("negotiated %q, want h2", s.NegotiatedProtocol)
	}
	leaf := s.PeerCertificates[0]
	if h.log.count("sha256_fingerprint="+certs.Fingerprint(leaf.Raw)) != 1 {
		t.Errorf("the fingerprint %s was not logged once", certs.Fingerprint(leaf.Raw))
	}
	if got := h.admin.URL(netip.MustParseAddr("192.0.2.7")); got != "https://192.0.2.7:"+port {
		t.Errorf("the URL for people is %s", got)
	}
	// Another change does not tell it again, nor show another certificate.
	h.apply(document(202, "0.0.0.0:"+port, "a "+at[0]))
	if again := shake(t, at[1], "").PeerCertificates[0]; !again.Equal(leaf) {
		t.Error("a change has brought another self-signed certificate")
	}
	if h.log.count("sha256_fingerprint=") != 1 {
		t.Error("the fingerprint is logged with every change")
	}
	// Plain HTTP is told so, and gets nothing.
	c, err := net.Dial("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	rs, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || rs.StatusCode != 400 {
		t.Errorf("plain HTTP: %v, %v; want 400", rs, err)
	}
}

func TestTheListenerShowsTheCertificateThatFits(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	certificates := map[string]string{"main": made(t, "main", "gate.example.com"), "other": made(t, "other", "other.example.com")}
	h := open(t, withAdmin(fmt.Sprintf("{address: %q}", at[1]), at[0], certificates))
	if got, _ := get(at[1], "/healthz"); got != 200 {
		t.Errorf("loopback without a certificate: %d by plain HTTP, want 200", got)
	}
	h.apply(withAdmin(fmt.Sprintf("{address: %q, certificate: main}", at[1]), at[0], certificates))
	for name, want := range map[string]string{"": "gate.example.com", "gate.example.com": "gate.example.com", "other.example.com": "other.example.com", "else.example.com": "gate.example.com"} {
		if got := shake(t, at[1], name).PeerCertificates[0].DNSNames[0]; got != want {
			t.Errorf("for %q it shows that of %s, want %s", name, got, want)
		}
	}
	// The same address, another certificate: connections that are open go on.
	kept, err := tls.Dial("tcp", at[1], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	kept.SetDeadline(time.Now().Add(patience))
	h.apply(withAdmin(fmt.Sprintf("{address: %q, certificate: other}", at[1]), at[0], certificates))
	if got := shake(t, at[1], "").PeerCertificates[0].DNSNames[0]; got != "other.example.com" {
		t.Errorf("after the change it shows that of %s", got)
	}
	fmt.Fprint(kept, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if rs, err := http.ReadResponse(bufio.NewReader(kept), nil); err != nil || rs.StatusCode != 200 {
		t.Errorf("a connection from before: %v, %v", rs, err)
	}
	// Back to plain HTTP at the same address.
	h.apply(withAdmin(fmt.Sprintf("{address: %q}", at[1]), at[0], certificates))
	if got, _ := get(at[1], "/healthz"); got != 200 {
		t.Errorf("got %d by plain HTTP, want 200", got)
	}
	if h.log.count("sha256_fingerprint=") != 0 {
		t.Error("a self-signed certificate was told of")
	}
}

func TestACertificateThatCannotBeUsedRefusesAChange(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := open(t, document(201, at[1], "a "+at[0]))
	dir := t.TempDir()
	write(t, dir+"/main.pem", "nothing")
	write(t, dir+"/main.key", "nothing")
	err := h.c.Apply(control.Cause{}, doc(withAdmin(fmt.Sprintf("{address: %q, certificate: main}", at[1]), at[0], map[string]string{"main": dir})))
	if err == nil || !strings.Contains(err.Error(), "main.pem") {
		t.Errorf("got %v, want that main.pem cannot be used", err)
	}
	if got, _ := get(at[1], "/healthz"); got != 200 {
		t.Errorf("got %d by plain HTTP, want 200", got)
	}
}
