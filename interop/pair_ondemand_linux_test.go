package interop

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// TestPairOrdersOnDemand has clients connect to the follower first. The leader orders the certificates
// and counts them for both; without it, new hosts are refused as unknown ones are, and others are served.
func TestPairOrdersOnDemand(t *testing.T) {
	var asked atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasPrefix(r.URL.Query().Get("domain"), "refused.") {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(app.Close)
	p := newPairOf(t, pairConfig(), func(one *twin) {
		one.secure = free(t)
		one.inside = append(one.inside, "SECURE="+one.secure, fmt.Sprintf("WEBPORT=%d", portOf(t, one.web)))
	})
	p.a.is("leader", true)
	p.b.is("follower", true)
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, p.b.web)})
	p.a.put("headgate.yaml", strings.Replace(pairConfig(), "proxies:", `  secure: {address: "${SECURE}", protocol: https}
proxies:
  tenants: {acme: main, on_demand: {ask: "`+app.URL+`", max_per_hour: 3}, routes: [{fixed_response: {status: 200, body: tenant}}]}`, 1)+fmt.Sprintf(`acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], challenge: http-01, http_port: "${WEBPORT}"}
`, authority.Directory, authority.CAFile, authority.Names))

	handshake := func(one *twin, name string) (string, time.Duration, error) {
		began := time.Now()
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", one.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			return "", time.Since(began), err
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Issuer.CommonName, time.Since(began), c.ConnectionState().PeerCertificates[0].VerifyHostname(name)
	}
	p.eventually("both have the rule", func() bool {
		for _, one := range []*twin{p.a, p.b} {
			if text, err := one.get("anything.example.com", "/"); err != nil || text != "tenant" {
				return false
			}
		}
		return true
	})
	for i, one := range []*twin{p.b, p.a, p.b} {
		name := fmt.Sprintf("t%d.customer.example.com", i)
		by, took, err := handshake(one, name)
		if err != nil || !strings.HasPrefix(by, "Pebble") || took > 10*time.Second {
			t.Errorf("the first handshake for %s at %s: %q, %v after %v", name, one.name, by, err, took)
		}
		t.Logf("%s at %s: %v", name, one.name, took.Round(time.Millisecond))
		for _, other := range []*twin{p.a, p.b} {
			p.eventually(other.name+" serves "+name, func() bool {
				by, _, err := handshake(other, name)
				return err == nil && strings.HasPrefix(by, "Pebble")
			})
		}
	}
	refused := func(what string, one *twin, name string, within time.Duration) {
		t.Helper()
		if by, took, err := handshake(one, name); err == nil || !strings.Contains(err.Error(), "unrecognized name") || took > within {
			t.Errorf("%s at %s: %q, %v after %v", what, one.name, by, err, took)
		} else {
			t.Logf("%s at %s: refused after %v", what, one.name, took.Round(time.Millisecond))
		}
	}
	refused("a fourth", p.b, "t3.customer.example.com", 5*time.Second)
	refused("a fourth", p.a, "t4.customer.example.com", 5*time.Second)
	refused("one that is not allowed", p.b, "refused.example.com", 5*time.Second)
	if n := authority.Orders(); n != 3 {
		t.Errorf("%d orders, want 3", n)
	}

	// The leader hangs: a new host is refused in time, and the others do not notice.
	if err := p.a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		refused("a new host while the leader hangs", p.b, "hangs.example.com", 9*time.Second)
	}()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			if by, took, err := handshake(p.b, "t0.customer.example.com"); err != nil || !strings.HasPrefix(by, "Pebble") || took > 2*time.Second {
				t.Errorf("meanwhile, another handshake: %q, %v after %v", by, err, took)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if err := p.a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.a.up.Store(false)
	p.a.stop()
	p.b.is("follower", false)
	refused("a new host without the leader", p.b, "away.example.com", 2*time.Second)
	if by, _, err := handshake(p.b, "t0.customer.example.com"); err != nil || !strings.HasPrefix(by, "Pebble") {
		t.Errorf("without the leader, a known host: %q, %v", by, err)
	}
	t.Logf("the application was asked %d times", asked.Load())
}
