package control

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

func TestATCPProxySpeaksTLSToItsServers(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	inner := httptest.NewTLSServer(nil)
	t.Cleanup(inner.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: inner.Certificate().Raw})))
	proxy := func(name, address, tls string) string {
		return fmt.Sprintf("%s: {address: %q, servers: [{address: %q, tls: %s}]}", name, address, inner.Listener.Addr(), tls)
	}
	h := start(t, streams(proxy("good", at[0], fmt.Sprintf("{ca_file: %q, server_name: example.com}", ca)), proxy("bad", at[1], "{}")))
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.get("/"); got != 404 || err != nil {
		t.Errorf("got %d and %v, want the server's 404", got, err)
	}
	if got := status(at[1]); got != 0 {
		t.Errorf("a server with a certificate of nobody: got %d", got)
	}
	states := h.c.Status().TCPProxies
	if s := states[0]; s.Name != "bad" || s.Errors["upstream_tls"] != 1 || !strings.Contains(s.Servers[0].LastError, "ca_file names it") {
		t.Errorf("got %+v", s)
	}
	h.apply(streams(proxy("good", at[0], "{insecure_skip_verify: true}")))
	expectStatus(t, at[0], 404)
	if u := h.c.Status().Unverified; len(u) != 1 || u[0].Proxy != "good" {
		t.Errorf("got %+v, want a warning that stands", u)
	}
}

func TestAHostThatPassesThroughIsNotServedToOthers(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	a := speaks(t, "a")
	start(t, https(document(201, "secure "+at[0]+" drain_timeout: 5s"))+fmt.Sprintf("tcp_proxies:\n  db: {port: secure, sni: [test], servers: [{address: %q}]}\n", a))
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := shake(c); err != nil { // asks for no name
		t.Fatal(err)
	}
	if got, err := c.get("/"); got != 421 || err != nil {
		t.Errorf("a request for a host that is passed through: got %d and %v, want 421", got, err)
	}
}

func TestTheServersOfATCPProxyAreChecked(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	a := speaks(t, "a")
	l, err := net.Listen("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, streams(own("db", at[0], ", health_check: {interval: 100ms, unhealthy_interval: 100ms, rise: 1, fall: 1}", a, at[1])))
	states := func() string {
		var words []string
		s := h.c.Status().TCPProxies[0]
		for _, server := range s.Servers {
			words = append(words, server.State.String())
		}
		return fmt.Sprint(s.Healthy, words)
	}
	testhouse.Eventually(t, "both are healthy", func() bool { return states() == "2 [healthy healthy]" })
	l.Close()
	testhouse.Eventually(t, "one is not", func() bool { return states() == "1 [healthy unhealthy]" })
	for range 4 {
		c, name := greeted(t, at[0])
		if name != "a" {
			t.Errorf("greeted by %q, want a", name)
		}
		c.Close()
	}
	if n := h.c.Status().TCPProxies[0].Errors["upstream_refused"]; n != 0 {
		t.Errorf("%d connections were tried at the server that is not there", n)
	}
	if l, err = net.Listen("tcp", at[1]); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	testhouse.Eventually(t, "it is healthy again", func() bool { return states() == "2 [healthy healthy]" })
}
