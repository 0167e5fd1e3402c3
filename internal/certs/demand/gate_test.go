package demand

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// peer is a connection of a client.
type peer struct {
	net.Conn
	remote net.Addr
}

func (p peer) RemoteAddr() net.Addr { return p.remote }

func hello(name, client string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: name, Conn: peer{remote: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(client), 1234))}}
}

// issuerOf orders certificates after a while, and counts the orders.
type issuerOf struct {
	mu      sync.Mutex
	takes   time.Duration
	fails   bool
	limit   *acme.Limited
	away    error
	orders  map[string]int
	valid   map[string]bool
	running map[string]chan struct{}
	failed  map[string]time.Time
}

func newIssuer(takes time.Duration) *issuerOf {
	return &issuerOf{takes: takes, orders: map[string]int{}, valid: map[string]bool{}, running: map[string]chan struct{}{}, failed: map[string]time.Time{}}
}

func (i *issuerOf) Progress(host string) acme.Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.running[host]
	return acme.Progress{Valid: i.valid[host], Ordering: c != nil, Changed: c, NotBefore: i.failed[host]}
}

func (i *issuerOf) OrderOnDemand(_ context.Context, host string, _ *acme.Demand) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.limit != nil {
		return i.limit
	}
	if i.away != nil {
		return i.away
	}
	i.orders[host]++
	done := make(chan struct{})
	i.running[host] = done
	time.AfterFunc(i.takes, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.running, host)
		if i.valid[host] = !i.fails; i.fails {
			i.failed[host] = time.Now().Add(time.Minute)
		}
		close(done)
	})
	return nil
}

// application answers requests with the status of answer.
type application struct {
	asked  atomic.Int64
	answer func(host string) int
}

func (a *application) RoundTrip(rq *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	status := a.answer(rq.URL.Query().Get("domain"))
	if status == 0 {
		<-rq.Context().Done()
		return nil, rq.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: rq}, nil
}

var rule = &acme.Demand{Proxy: "shops", Entry: "main", Settings: &acme.OnDemand{Ask: "http://127.0.0.1:3000/allowed?key=1", List: []string{"*.listed.example"}, MaxPerHour: 100, MaxCertificates: 100}}

func newGate(t *testing.T, i Issuer, answer func(string) int) (*Gate, *application) {
	began := time.Now()
	g := New(Options{Log: slog.New(slog.DiscardHandler), Agent: "headgate/test", Now: func() int64 { return int64(time.Since(began)) + 1 }})
	app := &application{answer: answer}
	g.client = &http.Client{Transport: app}
	g.Use(i)
	g.Set(func(port, host string) *acme.Demand {
		if port == "web" && !strings.HasSuffix(host, ".other.example") {
			return rule
		}
		return nil
	})
	t.Cleanup(g.Close)
	return g, app
}

func always(status int) func(string) int { return func(string) int { return status } }

func TestAnAllowedHostIsOrderedOnceAndAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(3 * time.Second)
		g, app := newGate(t, i, always(204))
		began := time.Now()
		var waiting sync.WaitGroup
		for n := range maxWaitingHost {
			waiting.Go(func() {
				if err := g.Await("web", hello("Shop.Example.com.", fmt.Sprintf("192.0.2.%d", n))); err != nil {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if err := g.Await("web", hello("shop.example.com", "192.0.2.200")); !errors.Is(err, errLater) || time.Since(began) > 0 {
			t.Errorf("one more than may wait got %v after %v, want it to be refused at once", err, time.Since(began))
		}
		waiting.Wait()
		if took := time.Since(began); took != 3*time.Second || i.orders["shop.example.com"] != 1 || app.asked.Load() != 1 {
			t.Errorf("took %v, %d orders, asked %d times, want 3s, 1, 1", took, i.orders["shop.example.com"], app.asked.Load())
		}
	})
}

func TestASlowOrderIsNotAwaitedForLongerThanAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(30 * time.Second)
		g, app := newGate(t, i, always(200))
		for _, at := range []time.Duration{0, maxWait, 2 * maxWait} {
			began := time.Now()
			if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); !errors.Is(err, errLater) || time.Since(began) != maxWait {
				t.Errorf("after %v: got %v after %v, want %v", at, err, time.Since(began), maxWait)
			}
		}
		if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); err != nil {
			t.Errorf("after the order: %v", err)
		}
		if i.orders["shop.example.com"] != 1 || app.asked.Load() != 1 {
			t.Errorf("%d orders, asked %d times, want 1 each", i.orders["shop.example.com"], app.asked.Load())
		}
	})
}

func TestRefusalsAreRememberedAndFailuresAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			status int
			pause  time.Duration
		}{{404, pauseRefused}, {302, pauseRefused}, {403, pauseRefused}, {500, pauseFailed}, {429, pauseFailed}, {0, pauseFailed}} {
			i := newIssuer(time.Second)
			g, app := newGate(t, i, always(test.status))
			refuse := func(asked int64) {
				t.Helper()
				if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) {
					t.Errorf("status %d: got %v", test.status, err)
				}
				if app.asked.Load() != asked {
					t.Errorf("status %d: asked %d times, want %d", test.status, app.asked.Load(), asked)
				}
			}
			refuse(1)
			time.Sleep(test.pause - time.Second)
			refuse(1)
			time.Sleep(time.Second)
			refuse(2)
			if len(i.orders) > 0 {
				t.Errorf("status %d: ordered %v", test.status, i.orders)
			}
		}
	})
}

func TestNamesThatCanHaveNoCertificateAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, app := newGate(t, newIssuer(time.Second), always(200))
		for _, name := range []string{"192.0.2.1", "2001:db8::1", "localhost", "a_b.example.com", "*.example.com", "müller.example.com", "com", "co.uk", "-a.example.com", "a..example.com", strings.Repeat("a", 64) + ".example.com", "a b.example.com", "../x.example.com"} {
			if err := g.Await("web", hello(name, "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) {
				t.Errorf("%q: got %v", name, err)
			}
		}
		quic := hello("shop.example.com", "192.0.2.1")
		quic.Conn = peer{remote: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}}
		if err := g.Await("web", quic); !errors.Is(err, certs.ErrNoCertificate) {
			t.Errorf("over HTTP/3: got %v", err)
		}
		for _, at := range [][2]string{{"web", "x.other.example"}, {"admin", "shop.example.com"}} {
			if err := g.Await(at[0], hello(at[1], "192.0.2.1")); err != nil {
				t.Errorf("%v without a rule: got %v", at, err)
			}
		}
		if app.asked.Load() != 0 {
			t.Errorf("asked %d times", app.asked.Load())
		}
		if err := g.Await("web", hello("a.listed.example", "192.0.2.1")); err != nil || app.asked.Load() != 0 {
			t.Errorf("a listed host: %v, asked %d times", err, app.asked.Load())
		}
	})
}

func TestAFloodOfNamesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(time.Second)
		g, app := newGate(t, i, always(404))
		for n := range 10_000 {
			if err := g.Await("web", hello(fmt.Sprintf("h%d.example.com", n), "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) {
				t.Fatalf("got %v", err)
			}
		}
		if n := app.asked.Load(); n > int64(clientLimit.Burst()) {
			t.Errorf("one client had the application asked %d times, want at most %d", n, clientLimit.Burst())
		}
		began := time.Now()
		for n := range 20_000 {
			if n%100 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			g.Await("web", hello(fmt.Sprintf("i%d.example.com", n), fmt.Sprintf("10.1.%d.%d", n/200, n%200)))
		}
		if n, most := app.asked.Load(), int64(clientLimit.Burst()+proxyLimit.Burst())+int64(20*time.Since(began).Seconds()); n > most {
			t.Errorf("20 000 clients had the application asked %d times in %v, want at most %d", n, time.Since(began), most)
		}
		if n := len(g.mu.refused.until); n > maxRefused || len(g.mu.flights) != 0 || g.mu.waiting != 0 {
			t.Errorf("%d refusals are remembered, %d hosts are under way, %d wait", n, len(g.mu.flights), g.mu.waiting)
		}
	})
}

func TestRefusalsHaveABound(t *testing.T) {
	r, now := newRefusals(), time.Now()
	for n := range 3 * maxRefused {
		r.add(fmt.Sprint(n), now, time.Minute)
		r.add(fmt.Sprint(n), now, time.Minute)
	}
	if len(r.until) != maxRefused || len(r.order) != maxRefused {
		t.Errorf("%d and %d are remembered, want %d", len(r.until), len(r.order), maxRefused)
	}
	if r.has("0", now) || !r.has(fmt.Sprint(3*maxRefused-1), now) || r.has(fmt.Sprint(3*maxRefused-1), now.Add(time.Minute)) {
		t.Error("the oldest have to make room, and the newest end in time")
	}
}

func TestALimitIsReportedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(time.Second)
		i.limit = &acme.Limited{Bound: "max_per_hour", Max: 3}
		g, _ := newGate(t, i, always(200))
		reported := 0
		g.Limited = func(proxy string, l *acme.Limited) {
			if reported++; proxy != "shops" || l.Bound != "max_per_hour" {
				t.Errorf("got %s, %v", proxy, l)
			}
		}
		for n := range 130 {
			if err := g.Await("web", hello(fmt.Sprintf("h%d.example.com", n), "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Minute)
		}
		if reported != 3 {
			t.Errorf("reported %d times in 130 minutes, want 3", reported)
		}
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, newIssuer(time.Hour), always(0))
		began := time.Now()
		time.AfterFunc(time.Second, g.Close)
		g.Await("web", hello("shop.example.com", "192.0.2.1"))
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
		if err := g.Await("web", hello("late.example.com", "192.0.2.1")); err == nil {
			t.Error("a closed gate takes handshakes")
		}
		synctest.Wait()
	})
}

// TestRandom lets clients connect at random while the application and the authority change,
// and holds what the bounds promise.
func TestRandom(t *testing.T) {
	testhouse.Lives(t, 1, 60, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		synctest.Test(t, func(t *testing.T) {
			i := newIssuer(time.Duration(r.IntN(20)) * time.Second)
			i.fails = r.IntN(3) == 0
			statuses := []int{200, 204, 302, 404, 500, 0}
			allowed := map[string]bool{}
			var mu sync.Mutex
			g, app := newGate(t, i, func(host string) int {
				mu.Lock()
				defer mu.Unlock()
				s := statuses[r.IntN(len(statuses))]
				allowed[host] = allowed[host] || s >= 200 && s < 300
				return s
			})
			began := time.Now()
			var waiting sync.WaitGroup
			for range 400 {
				mu.Lock()
				host, client, pause := fmt.Sprintf("h%d.example.com", r.IntN(40)), fmt.Sprintf("192.0.2.%d", r.IntN(4)), time.Duration(r.IntN(2000))*time.Millisecond
				mu.Unlock()
				waiting.Go(func() {
					start := time.Now()
					err := g.Await("web", hello(host, client))
					if took := time.Since(start); took > maxWait {
						t.Errorf("%s waited for %v", host, took)
					}
					if err == nil && !i.Progress(host).Valid {
						t.Errorf("%s goes on without a certificate", host)
					}
				})
				time.Sleep(pause)
			}
			waiting.Wait()
			time.Sleep(maxFlight)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for host := range i.orders {
				if !allowed[host] {
					t.Errorf("%s was ordered and never allowed", host)
				}
				if !i.fails && i.orders[host] > 1 {
					t.Errorf("%s was ordered %d times", host, i.orders[host])
				}
			}
			if most := 4 * (int64(clientLimit.Burst()) + int64(time.Since(began)/(3*time.Second)) + 1); app.asked.Load() > most {
				t.Errorf("4 clients had the application asked %d times, want at most %d", app.asked.Load(), most)
			}
			if len(g.mu.flights) != 0 || g.mu.waiting != 0 || len(g.asking) != 0 {
				t.Errorf("left: %d hosts, %d handshakes, %d requests", len(g.mu.flights), g.mu.waiting, len(g.asking))
			}
		})
	})
}

// Without the machine that orders, a host is refused at once as an unknown one is, and it is not asked
// again for a moment.
func TestWithoutTheMachineThatOrdersAHostIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(time.Second)
		i.away = fmt.Errorf("%w: the leader is away", store.ErrUnavailable)
		var log bytes.Buffer
		g := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() int64 { return time.Now().UnixNano() }})
		defer g.Close()
		g.Use(i)
		g.Set(func(string, string) *acme.Demand {
			return &acme.Demand{Proxy: "tenants", Entry: "main", Settings: &acme.OnDemand{List: []string{"shop.example.com"}}}
		})
		began := time.Now()
		for range 2 {
			if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "no certificate on demand"); n != 1 {
			t.Errorf("the failure was logged %d times, want once:\n%s", n, &log)
		}
		i.mu.Lock()
		i.away = nil
		i.mu.Unlock()
		time.Sleep(pauseFailed)
		if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); err != nil {
			t.Errorf("when it is back: %v", err)
		}
	})
}

func TestTheLogHasNoSecretOfTheApplicationsURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, newIssuer(time.Second), always(0)) // does not respond
		var log bytes.Buffer
		g.Log = slog.New(slog.NewTextHandler(&log, nil))
		if err := g.Await("web", hello("shop.example.com", "192.0.2.1")); !errors.Is(err, certs.ErrNoCertificate) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "shop.example.com") || strings.Contains(text, "key=1") {
			t.Errorf("want the host and no query in %s", text)
		}
	})
}
