package interop

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// tenants is an application with customers that bring their own domains, and its proxy.
type tenants struct {
	*acmetest.Authority
	t              *testing.T
	secure, admin  string
	config         string
	asked, refused atomic.Int64
	customers      sync.Map // their domains
}

func startTenants(t *testing.T, perHour int) *tenants {
	t.Helper()
	s := &tenants{t: t, secure: free(t), admin: free(t)}
	web := free(t)
	s.Authority = acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, web), HTTPSPort: portOf(t, s.secure)})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/allowed" {
			io.WriteString(w, "for "+r.Host)
			return
		}
		s.asked.Add(1)
		if _, known := s.customers.Load(r.URL.Query().Get("domain")); !known {
			s.refused.Add(1)
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(app.Close)
	s.config = fmt.Sprintf(`version: 1
admin: {address: %q}
ports: {web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}}
acme:
  main: {directory: %q, ca_file: %q, resolvers: [%q], http_port: %d, https_port: %d}
proxies:
  own:
    virtual_hosts: [own.example.com]
    acme: main
    routes: [{servers: [{url: %q}]}]
  tenants:
    acme: main
    on_demand: {ask: %q, max_per_hour: %d}
    routes: [{servers: [{url: %q}]}]
`, s.admin, web, s.secure, s.Directory, s.CAFile, s.Names, portOf(t, web), portOf(t, s.secure), app.URL, app.URL+"/allowed", perHour, app.URL)
	return s
}

// handshake returns how long a handshake took, and who has issued the certificate.
func (s *tenants) handshake(name string) (time.Duration, string, error) {
	began := time.Now()
	c, err := tls.Dial("tcp", s.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return time.Since(began), "", err
	}
	defer c.Close()
	leaf := c.ConnectionState().PeerCertificates[0]
	return time.Since(began), leaf.Issuer.CommonName, leaf.VerifyHostname(name)
}

// served checks that a name is served with a certificate of the authority.
func (s *tenants) served(name string, within time.Duration) {
	s.t.Helper()
	took, by, err := s.handshake(name)
	s.t.Logf("%s: %v", name, took.Round(time.Millisecond))
	if err != nil || !strings.HasPrefix(by, "Pebble") || took > within {
		s.t.Errorf("%s: %q, %v after %v, want a certificate within %v", name, by, err, took, within)
	}
}

// refuses checks that a handshake gets an alert at once.
func (s *tenants) refuses(name string) {
	s.t.Helper()
	took, _, err := s.handshake(name)
	if err == nil || !strings.Contains(err.Error(), "unrecognized name") || took > time.Second {
		s.t.Errorf("%s: got %v after %v, want the alert at once", name, err, took)
	}
}

func (s *tenants) add(names ...string) {
	for _, n := range names {
		s.customers.Store(n, true)
	}
}

// memoryOf returns the memory that a process holds, in KiB.
func memoryOf(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	n, err := strconv.Atoi(regexp.MustCompile(`VmRSS:\s+(\d+)`).FindStringSubmatch(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func medianTime(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func TestOnDemand(t *testing.T) {
	s := startTenants(t, 3)
	s.add("one.customer.example.com", "two.customer.example.com", "three.customer.example.com", "four.customer.example.com")
	g := start(t, s.config)
	g.until("own.example.com", "valid")

	s.served("one.customer.example.com", 10*time.Second)
	s.served("one.customer.example.com", time.Second)
	s.refuses("stranger.example.com")
	s.refuses("stranger.example.com")
	s.refuses("localhost")
	if s.asked.Load() != 2 || s.Orders() != 2 {
		t.Errorf("asked %d times and ordered %d, want 2 and 2", s.asked.Load(), s.Orders())
	}
	out, err := exec.Command(os.Getenv(binaryFolder), "acme", "status", "--admin", s.admin).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "one.customer.example.com") {
		t.Errorf("headgate acme status: %v\n%s", err, out)
	}
	out, err = exec.Command(os.Getenv(binaryFolder), "explain", "GET", "https://new.example.com/", "--config", g.file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "on_demand of the proxy tenants") {
		t.Errorf("headgate explain: %v\n%s", err, out)
	}

	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.cmd.Wait()
	s.customers.Clear() // what exists is served without a question
	g.start(s.config)
	s.served("one.customer.example.com", 2*time.Second)
	if s.asked.Load() != 2 || s.Orders() != 2 {
		t.Errorf("after a kill: asked %d times and ordered %d, want 2 and 2", s.asked.Load(), s.Orders())
	}

	s.add("two.customer.example.com", "three.customer.example.com", "four.customer.example.com")
	s.served("two.customer.example.com", 10*time.Second)
	g.stop()
	g.start(s.config)
	s.served("three.customer.example.com", 10*time.Second)
	s.refuses("four.customer.example.com")
	if s.Orders() != 4 {
		t.Errorf("%d orders, want 4: max_per_hour counts over restarts", s.Orders())
	}
	page := get(t, s.admin, s.admin, "/metrics")
	for _, line := range []string{`headgate_certificate_on_demand_total{result="issued"} 1`, `headgate_certificate_on_demand_total{result="limited"} 1`} {
		if !strings.Contains(page, line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

// TestOnDemandFlood has clients request 10 000 random names, and compares the handshakes of
// others before and meanwhile.
func TestOnDemandFlood(t *testing.T) {
	s := startTenants(t, 1000)
	g := start(t, s.config)
	g.until("own.example.com", "valid")
	measure := func() time.Duration {
		var all []time.Duration
		for range 200 {
			took, by, err := s.handshake("own.example.com")
			if err != nil || !strings.HasPrefix(by, "Pebble") {
				t.Fatalf("got %q, %v", by, err)
			}
			all = append(all, took)
		}
		return medianTime(all)
	}
	flood := func(names func(n int) string, total int) (stop func() int64) {
		var next atomic.Int64
		var clients sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			clients.Go(func() {
				for n := next.Add(1); n <= int64(total); n = next.Add(1) {
					select {
					case <-done:
						return
					default:
					}
					s.handshake(names(int(n)))
				}
			})
		}
		return func() int64 { clients.Wait(); close(done); return next.Load() }
	}
	quiet := measure()
	// The same load without on_demand: names that another proxy has.
	wait := flood(func(n int) string { return "own.example.com" }, 3000)
	loaded := measure()
	wait()
	before := memoryOf(t, g.cmd.Process.Pid)
	began := time.Now()
	wait = flood(func(n int) string { return fmt.Sprintf("r%d.example.net", n) }, 10_000)
	flooded := measure()
	wait()
	took := time.Since(began)
	after := memoryOf(t, g.cmd.Process.Pid)
	t.Logf("median handshake: quiet %v, with as many handshakes of good names %v, in the flood %v; the flood took %v", quiet, loaded, flooded, took)
	t.Logf("asked %d times, %d orders, memory %d → %d KiB", s.asked.Load(), s.Orders(), before, after)
	if most := 21 + int64(took/(3*time.Second)); s.asked.Load() > most {
		t.Errorf("the application was asked %d times, want at most %d", s.asked.Load(), most)
	}
	if s.Orders() != 1 {
		t.Errorf("%d orders, want 1", s.Orders())
	}
	if after > before+64<<10 {
		t.Errorf("the flood took %d KiB of memory", after-before)
	}
	if flooded > 2*loaded+5*time.Millisecond {
		t.Errorf("a handshake of others takes %v in the flood, and %v with as many good ones", flooded, loaded)
	}
}

// TestOnDemandWaitSlowsNoOthers has more handshakes wait for an order than handshakes are
// computed at once.
func TestOnDemandWaitSlowsNoOthers(t *testing.T) {
	s := startTenants(t, 1000)
	g := start(t, s.config)
	g.until("own.example.com", "valid")
	var slow atomic.Bool
	release := make(chan struct{})
	s.Meddle = func(http.ResponseWriter, *http.Request) bool {
		if slow.Load() {
			<-release
		}
		return false
	}
	var names []string
	for n := range 3 {
		names = append(names, fmt.Sprintf("c%d.customer.example.com", n))
	}
	s.add(names...)
	slow.Store(true)
	var clients sync.WaitGroup
	var late atomic.Int64
	for n := range 90 {
		clients.Go(func() {
			took, _, err := s.handshake(names[n%3])
			if err == nil || took > 10*time.Second+time.Second {
				t.Errorf("got %v after %v, want an alert within 10s", err, took)
			} else if strings.Contains(err.Error(), "internal error") {
				late.Add(1)
			}
		})
	}
	time.Sleep(time.Second)
	var all []time.Duration
	for range 50 {
		took, by, err := s.handshake("own.example.com")
		if err != nil || !strings.HasPrefix(by, "Pebble") {
			t.Fatalf("got %q, %v", by, err)
		}
		all = append(all, took)
	}
	if m := medianTime(all); m > 200*time.Millisecond {
		t.Errorf("a handshake takes %v while 90 wait", m)
	} else {
		t.Logf("a handshake takes %v while 90 wait", m)
	}
	clients.Wait()
	if late.Load() != 90 {
		t.Errorf("%d of 90 got the alert internal_error", late.Load())
	}
	slow.Store(false)
	close(release)
	for _, n := range names {
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, by, err := s.handshake(n); err == nil && strings.HasPrefix(by, "Pebble") {
				break
			} else if time.Now().After(end) {
				t.Fatalf("%s has no certificate: %q, %v", n, by, err)
			}
		}
	}
	if s.Orders() != 4 {
		t.Errorf("%d orders, want 4", s.Orders())
	}
}
