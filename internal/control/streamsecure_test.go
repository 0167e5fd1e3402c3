package control

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/testhouse"
)

// signed writes a certificate for names by an authority and returns its configuration.
func signed(t *testing.T, authority *tls.Certificate, names ...string) string {
	t.Helper()
	cert := certstest.Sign(t, &x509.Certificate{DNSNames: names}, authority)
	certFile, keyFile := certstest.Write(t, t.TempDir(), "cert", cert)
	return fmt.Sprintf("{cert_file: %q, key_file: %q}", certFile, keyFile)
}

// secureVisit makes a TLS connection and returns the server's first line, the application
// protocol, and the names of the certificate.
func secureVisit(t *testing.T, address string, cfg *tls.Config) (c *tls.Conn, line, protocol string, names []string, err error) {
	t.Helper()
	cfg.InsecureSkipVerify = true
	nc, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	c = tls.Client(nc, cfg)
	if err := c.Handshake(); err != nil {
		return c, "", "", nil, err
	}
	line, err = bufio.NewReader(c).ReadString('\n')
	state := c.ConnectionState()
	return c, strings.TrimSuffix(line, "\n"), state.NegotiatedProtocol, state.PeerCertificates[0].DNSNames, err
}

// expectVisit holds which server a TLS client reaches, and by which protocol.
func expectVisit(t *testing.T, address, server, protocol string, cfg *tls.Config) {
	t.Helper()
	c, line, negotiated, _, err := secureVisit(t, address, cfg)
	c.Close()
	if line != server || negotiated != protocol || err != nil {
		t.Errorf("%s offering %q: got %q by %q and %v, want %q by %q", cfg.ServerName, cfg.NextProtos, line, negotiated, err, server, protocol)
	}
}

func TestATCPProxyTerminatesTLS(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	ca := certstest.Sign(t, certstest.Authority("clients"), nil)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	write(t, caFile, string(certstest.PEM(ca)))
	client := certstest.Sign(t, &x509.Certificate{DNSNames: []string{"device"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, &ca)
	config := func(tls string) string {
		return "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\ncertificates:\n  one: " + signed(t, nil, "one.test") + "\n  two: " + signed(t, nil, "*.two.test") + "\n" +
			"tcp_proxies:\n  " + own("db", at[0], ", tls: "+tls, speaks(t, "a")) + "\n"
	}
	h := start(t, config("{default_certificate: one, alpn: [mqtt, postgresql]}"))
	for asked, want := range map[string]string{"one.test": "one.test", "x.two.test": "*.two.test", "other.test": "one.test", "": "one.test"} {
		c, line, protocol, names, err := secureVisit(t, at[0], &tls.Config{ServerName: asked, NextProtos: []string{"postgresql"}})
		if line != "a" || protocol != "postgresql" || !slices.Equal(names, []string{want}) || err != nil {
			t.Errorf("%q: got %q by %q with %q and %v, want a by postgresql with %s", asked, line, protocol, names, err, want)
		}
		// Both directions, and an end of one of them.
		io.WriteString(c, "there")
		c.CloseWrite()
		if b, err := io.ReadAll(c); string(b) != "there" || err != nil {
			t.Errorf("%q: got %q and %v back", asked, b, err)
		}
		c.Close()
	}
	expectVisit(t, at[0], "a", "", &tls.Config{})
	if _, _, _, _, err := secureVisit(t, at[0], &tls.Config{NextProtos: []string{"h2"}}); err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Errorf("a client with other protocols: got %v", err)
	}
	if s := h.c.Status().TCPProxies[0]; !s.TerminatesTLS || s.Connections != 0 && s.Accepted != 5 {
		t.Errorf("got %+v", s)
	}
	open, line, _, _, err := secureVisit(t, at[0], &tls.Config{})
	if line != "a" || err != nil {
		t.Fatal(line, err)
	}

	h.apply(config(fmt.Sprintf("{min_version: \"1.3\", client_auth: required, client_ca: %q}", caFile)))
	if _, _, _, _, err := secureVisit(t, at[0], &tls.Config{MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
	if _, _, _, _, err := secureVisit(t, at[0], &tls.Config{}); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a client certificate: got %v", err)
	}
	expectVisit(t, at[0], "a", "", &tls.Config{Certificates: []tls.Certificate{client}})
	// The connection of before the change stays.
	if _, err := io.WriteString(open, "still\n"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 6)
	if _, err := io.ReadFull(open, b); string(b) != "still\n" {
		t.Errorf("got %q and %v, want the connection to continue", b, err)
	}
	open.Close()
}

// A client that a filter denies gets no handshake.
func TestATCPProxyDeniesBeforeTheHandshake(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, streams(own("db", at[0], ", tls: {}, ip_filter: {deny: [127.0.0.1]}", speaks(t, "a"))))
	if _, _, _, _, err := secureVisit(t, at[0], &tls.Config{}); err == nil {
		t.Error("the handshake succeeded")
	}
	testhouse.Eventually(t, "it is counted", func() bool { return h.c.Status().TCPProxies[0].Errors["address_denied"] == 1 })
}

func TestTCPProxiesShareAnAddress(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	inner, _ := tls.X509KeyPair(pairOf(t, "inner.test"))
	passed := testhouse.Server(t, func(c net.Conn) {
		secure := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{inner}, NextProtos: []string{"raw"}})
		io.WriteString(secure, "inner\n")
		io.Copy(secure, secure)
	})
	shared := []string{
		own("a", at[0], ", sni: [a.test, \"*.wild.test\"], tls: {}", speaks(t, "a")),
		own("mqtt", at[0], ", sni: [a.test], alpn: [mqtt, mqtts], tls: {}", speaks(t, "mqtt")),
		own("passed", at[0], ", sni: [inner.test]", passed),
		own("any", at[0], ", alpn: [xmpp-client], tls: {}", speaks(t, "xmpp")),
	}
	h := start(t, streams(shared...))
	expectAll := func() {
		t.Helper()
		expectVisit(t, at[0], "a", "", &tls.Config{ServerName: "A.test"})
		expectVisit(t, at[0], "a", "", &tls.Config{ServerName: "x.wild.test"})
		expectVisit(t, at[0], "mqtt", "mqtt", &tls.Config{ServerName: "a.test", NextProtos: []string{"h2", "mqtt"}})
		expectVisit(t, at[0], "inner", "raw", &tls.Config{ServerName: "inner.test", NextProtos: []string{"raw"}})
		expectVisit(t, at[0], "xmpp", "xmpp-client", &tls.Config{ServerName: "other.test", NextProtos: []string{"xmpp-client"}})
	}
	expectAll()
	var alert tls.AlertError
	if _, _, _, _, err := secureVisit(t, at[0], &tls.Config{ServerName: "other.test"}); !errors.As(err, &alert) && !strings.Contains(fmt.Sprint(err), "unrecognized name") {
		t.Errorf("a name that no proxy has: got %v, want the alert", err)
	}
	open, line, _, _, err := secureVisit(t, at[0], &tls.Config{ServerName: "a.test"})
	if line != "a" || err != nil {
		t.Fatal(line, err)
	}
	since, _ := h.port("a", at[0])

	// A proxy for the rest joins: TLS clients without a known name, and those without TLS.
	h.apply(streams(append(shared, own("rest", at[0], "", speaks(t, "rest")))...))
	expectAll()
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "SSH-2.0-client\r\n")
	if name, _ := c.r.ReadString('\n'); name != "rest\n" {
		t.Errorf("without TLS: got %q, want rest", name)
	}
	c.Close()
	if p, ok := h.port("a", at[0]); !ok || !p.Since.Equal(since.Since) {
		t.Errorf("got %+v, want the socket to stay", p)
	}
	if _, err := io.WriteString(open, "x"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(open, b); err != nil {
		t.Errorf("a connection of before the change: %v", err)
	}
	// What the change refuses.
	for what, proxy := range map[string]string{
		"accepts all connections":                       own("second", at[0], "", "127.0.0.1:1"),
		"TCP proxy a has a.test on":                     own("twice", at[0], ", sni: [a.test]", "127.0.0.1:1"),
		"mqtt has a.test with mqtts on":                 own("twice", at[0], ", sni: [a.test], alpn: [mqtts]", "127.0.0.1:1"),
		"has the same address with a different max_con": own("limit", at[0], ", sni: [l.test], max_connections: 5", "127.0.0.1:1"),
	} {
		if err := h.try(streams(append(shared, own("rest", at[0], "", "127.0.0.1:1"), proxy)...)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	open.Close()
}

// pairOf returns a certificate and its key in PEM form.
func pairOf(t *testing.T, names ...string) (cert, key []byte) {
	c := certstest.Sign(t, &x509.Certificate{DNSNames: names}, nil)
	return certstest.PEM(c), certstest.KeyPEM(t, c)
}

func TestTCPProxiesBesideHTTPS(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, https(document(201, "secure "+at[0]+" drain_timeout: 5s"))+"tcp_proxies:\n"+
		fmt.Sprintf("  ended: {port: secure, sni: [db.test], tls: {}, servers: [{address: %q}]}\n", speaks(t, "db"))+
		fmt.Sprintf("  mqtt: {port: secure, sni: [both.test], alpn: [mqtt], tls: {}, servers: [{address: %q}]}\n", speaks(t, "mqtt"))+
		fmt.Sprintf("  xmpp: {port: secure, alpn: [xmpp-client], tls: {}, servers: [{address: %q}]}\n", speaks(t, "xmpp")))
	expectVisit(t, at[0], "db", "", &tls.Config{ServerName: "db.test", NextProtos: nil})
	expectVisit(t, at[0], "mqtt", "mqtt", &tls.Config{ServerName: "both.test", NextProtos: []string{"mqtt"}})
	expectVisit(t, at[0], "xmpp", "xmpp-client", &tls.Config{ServerName: "any.test", NextProtos: []string{"xmpp-client"}})
	// HTTP of a name that a proxy has for one protocol only is served by the port.
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	secure := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true, ServerName: "both.test", NextProtos: []string{"http/1.1"}})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.Conn, c.r = secure, bufio.NewReader(secure)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: both.test\r\n\r\n")
	if got, err := c.answer(); got != 201 || err != nil {
		t.Errorf("got %d and %v, want 201", got, err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: db.test\r\n\r\n")
	if got, err := c.answer(); got != 421 || err != nil {
		t.Errorf("a host of a TCP proxy: got %d and %v, want 421", got, err)
	}
	for _, s := range h.c.Status().TCPProxies {
		if s.Accepted != 1 {
			t.Errorf("%s accepted %d connections, want 1", s.Name, s.Accepted)
		}
	}
}

// The server gets the address that a load balancer in front has reported, and the access
// log has the peer.
func TestATCPProxyTerminatesTLSBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	start(t, streams(own("db", at[0], ", tls: {}, proxy_protocol: v1, accept_proxy_protocol: {trusted: [127.0.0.1]}", testhouse.Server(t, func(c net.Conn) { io.Copy(c, c) }))))
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n")
	if err := shake(c); err != nil {
		t.Fatal(err)
	}
	if line, err := c.r.ReadString('\n'); line != "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n" {
		t.Errorf("got %q and %v", line, err)
	}
}
