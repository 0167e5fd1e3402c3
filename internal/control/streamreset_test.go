package control

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// A client that resets its connection is noticed while the proxy waits until it may
// write to it: the server hears of it at once, not after the idle time.
func TestAResetOfAClientThatDoesNotReadIsNoticed(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	left := make(chan error, 1)
	flood := func(c net.Conn) {
		p := make([]byte, 64<<10)
		for {
			if _, err := c.Write(p); err != nil {
				left <- err
				return
			}
		}
	}
	raw := testhouse.Server(t, flood)
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	secret := testhouse.Server(t, func(c net.Conn) { flood(tls.Server(c, &tls.Config{Certificates: other.TLS.Certificates})) })
	h := start(t, fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {secure: {address: %q, protocol: https}}
proxies: {all: {routes: [{fixed_response: {status: 204}}]}}
tcp_proxies:
  plain: {address: %q, servers: [{address: %q}], idle_timeout: 1h}
  through: {port: secure, sni: [db.example.com], servers: [{address: %q}], idle_timeout: 1h}
`, at[0], at[1], raw, secret))
	for i, name := range []string{"through", "plain"} {
		c, err := net.Dial("tcp", at[i])
		if err != nil {
			t.Fatal(err)
		}
		if name == "through" {
			if err := tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "db.example.com"}).Handshake(); err != nil {
				t.Fatal(err)
			}
		}
		sent := func() (n uint64) {
			for _, p := range h.c.Status().TCPProxies {
				if p.Name == name {
					n = p.Sent
				}
			}
			return n
		}
		var last uint64
		testhouse.Eventually(t, name+" waits to write", func() bool {
			now := sent()
			waits := now > 0 && now == last
			last = now
			return waits
		})
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
		select {
		case <-left:
		case <-time.After(patience):
			t.Fatalf("%s: the server does not hear of it", name)
		}
		testhouse.Eventually(t, name+" has ended", func() bool {
			return h.c.Status().TCPProxies[map[string]int{"plain": 0, "through": 1}[name]].Connections == 0
		})
	}
}
