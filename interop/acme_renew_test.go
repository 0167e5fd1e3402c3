package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/testhouse"
)

// renewals is how often a certificate is renewed under load. A run of minutes takes 100.
var renewals = flag.Int("renewals", 5, "renew a certificate under load so often")

// issuing is an authority, and the configuration of a house that asks it.
type issuing struct {
	*acmetest.Authority
	secure, admin string
	config        string
}

func startIssuing(t *testing.T, s acmetest.Settings, more string) *issuing {
	t.Helper()
	i := &issuing{secure: free(t), admin: free(t)}
	web := free(t)
	s.HTTPPort, s.HTTPSPort = portOf(t, web), portOf(t, i.secure)
	i.Authority = acmetest.Start(t, s)
	i.config = fmt.Sprintf(`version: 1
admin: {address: %q}
ports: {web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}}
acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], http_port: %d, https_port: %d%s}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    acme: main
    routes: [{fixed_response: {status: 204}}]
`, i.admin, web, i.secure, i.Directory, i.CAFile, i.Names, s.HTTPPort, s.HTTPSPort, more)
	return i
}

// handshake makes a full handshake as a browser would, and returns the serial number
// of the certificate. One that has ended or is nobody's is an error.
func (i *issuing) handshake() (string, error) {
	c, err := tls.Dial("tcp", i.secure, &tls.Config{ServerName: "shop.example.com", InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	defer c.Close()
	leaf := c.ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname("shop.example.com"); err != nil {
		return "", err
	}
	if !strings.HasPrefix(leaf.Issuer.CommonName, "Pebble") {
		return "", errors.New("the issuer is " + leaf.Issuer.CommonName)
	}
	if now := time.Now(); now.After(leaf.NotAfter) {
		return "", fmt.Errorf("the certificate ended %v ago", now.Sub(leaf.NotAfter))
	}
	return leaf.SerialNumber.String(), nil
}

// TestRenewalsLoseNoHandshake renews a certificate that lives for 30 seconds again and
// again, while clients make hundreds of handshakes a second.
func TestRenewalsLoseNoHandshake(t *testing.T) {
	i := startIssuing(t, acmetest.Settings{Life: 30 * time.Second}, ", renew: lifetime")
	began := time.Now()
	g := start(t, i.config)
	g.until("shop.example.com", "valid")
	t.Logf("the first certificate after %v", time.Since(began).Round(time.Millisecond))

	var made, lost atomic.Int64
	var serials sync.Map
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				testhouse.Pause()
				serial, err := i.handshake()
				if err != nil {
					if lost.Add(1) < 10 {
						t.Errorf("a handshake was lost: %v", err)
					}
					continue
				}
				made.Add(1)
				serials.Store(serial, true)
			}
		})
	}
	for range *renewals {
		out, err := exec.Command(os.Getenv(binaryFolder), "acme", "renew", "shop.example.com", "--admin", i.admin, "--timeout", "1m").CombinedOutput()
		if err != nil {
			t.Errorf("headgate acme renew: %v\n%s", err, out)
		}
	}
	close(done)
	clients.Wait()
	seen := 0
	serials.Range(func(any, any) bool { seen++; return true })
	if seen < *renewals/2 || made.Load() == 0 {
		t.Errorf("%d certificates were seen in %d handshakes, after %d renewals", seen, made.Load(), *renewals)
	}
	t.Logf("%d handshakes lost of %d, %d certificates seen", lost.Load(), made.Load()+lost.Load(), seen)
}

// TestAKillAtAnyStepCostsNoSecondOrder kills the process with signal 9 at each request
// to the authority in turn, and starts it again over the same state.
func TestAKillAtAnyStepCostsNoSecondOrder(t *testing.T) {
	for n := int32(1); ; n++ {
		killed := false
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
			i := startIssuing(t, acmetest.Settings{}, "")
			dead, end := context.WithCancel(t.Context())
			defer end()
			var asked atomic.Int32
			reached := make(chan struct{})
			i.Meddle = func(http.ResponseWriter, *http.Request) bool {
				if asked.Add(1) != n {
					return false
				}
				close(reached)
				<-dead.Done()
				return true
			}
			g := start(t, i.config)
			select {
			case <-reached:
				killed = true
			case <-issued(t, i):
				return
			}
			g.kill()
			end()
			g.start(i.config)
			g.until("shop.example.com", "valid")
			if got := i.Orders(); got != 1 {
				t.Errorf("%d orders were placed, want 1\n%s", got, g.log)
			}
		})
		if !killed || t.Failed() {
			if n < 6 {
				t.Errorf("an order has only %d requests", n-1)
			}
			return
		}
	}
}

// issued returns a channel that is closed when the certificate is served.
func issued(t *testing.T, i *issuing) chan struct{} {
	done := make(chan struct{})
	go func() {
		for t.Context().Err() == nil {
			if _, err := i.handshake(); err == nil {
				close(done)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return done
}
