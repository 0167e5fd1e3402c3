package upstream

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/setting/unit"
)

// A server with max_requests runs no more; who comes later waits, and gets 503
// when it waited too long or too many do.
func TestQueueOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := target("127.0.0.1:1", 1)
		full.MaxRequests = 1
		s := newServers(t, settings, full)
		s.queueTimeout = 3 * time.Second
		first, _, none := s.choose(exchangetest.New(t), tried{})
		if first == nil {
			t.Fatal(none.Cause)
		}
		equal(t, "active", first.live.Active(), 1)
		_, _, none = s.choose(exchangetest.New(t), tried{}) // a queue of length 0
		equal(t, "reason", none.Reason, exchange.Overloaded)

		s = newServersWith(t, Policy{QueueLength: 1, QueueTimeout: 3 * time.Second}, full)
		first, _, _ = s.choose(exchangetest.New(t), tried{})
		var all sync.WaitGroup
		all.Go(func() {
			_, _, none := s.choose(exchangetest.New(t), tried{})
			equal(t, "waited too long", none.Reason, exchange.Overloaded)
		})
		synctest.Wait()
		_, _, none = s.choose(exchangetest.New(t), tried{})
		equal(t, "the queue is full", none.Reason, exchange.Overloaded)
		all.Wait()
		all.Go(func() {
			srv, _, _ := s.choose(exchangetest.New(t), tried{})
			equal(t, "server", srv, first)
		})
		synctest.Wait()
		first.released()
		all.Wait()
		equal(t, "active", first.live.Active(), 1)

		ex := exchangetest.New(t)
		ex.Front.(*exchangetest.Front).Left = true
		_, _, none = s.choose(ex, tried{})
		equal(t, "left", none.Reason, exchange.ClientClosed)
	})
}

// A request that came just before its server's circuit half-opened and is let through as a
// probe counts as one: it has taken the place of another.
func TestAProbeThatCameBeforeTheCircuitHalfOpenedCounts(t *testing.T) {
	for name, choose := range map[string]func(*Servers, *exchange.Exchange) *Server{
		"chosen": func(s *Servers, ex *exchange.Exchange) *Server {
			srv, _, _ := s.choose(ex, tried{})
			return srv
		},
		"claimed": func(s *Servers, ex *exchange.Exchange) *Server {
			srv, _ := s.claim(ex, 0, tried{})
			return srv
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &health.Breaker{ErrorPercent: 50, Window: unit.Duration(time.Second), MinRequests: 1, Status: "500-599", OpenTime: unit.Duration(time.Second), Probes: 1}
				s := newServersWith(t, Policy{Health: Health{Breaker: b}}, target("127.0.0.1:1", 1))
				c := s.List()[0].circuit
				c.Failed(exchange.Now(), exchange.Now())
				equal(t, "circuit", c.State(), health.CircuitOpen)
				time.Sleep(time.Second - time.Millisecond)
				ex := exchangetest.New(t)
				ex.Times.Passed = ex.Times.Start // the clock of a test may stand below 0
				time.Sleep(time.Millisecond)
				synctest.Wait()
				equal(t, "circuit", c.State(), health.CircuitHalfOpen)
				srv := choose(s, ex)
				if srv == nil {
					t.Fatal("no server")
				}
				ex.Response.Status, ex.Times.Head = 200, exchange.Now()
				srv.countAttempt(ex, nil)
				srv.released()
				equal(t, "circuit after the probe", c.State(), health.CircuitClosed)
			})
		})
	}
}

func TestEveryExchangeIsReleasedOnce(t *testing.T) {
	live := serve(t, "live")
	s := newServersWith(t, Policy{Balance: balance.Choice{Method: balance.P2CEWMA}}, target(live, 1), target("127.0.0.1:1", 1))
	for range 50 {
		exchangetest.Run(t, exchangetest.New(t), s)
	}
	for _, srv := range s.List() {
		equal(t, srv.URL, srv.live.Active(), 0)
	}
	equal(t, "measured", s.list[0].live.Took(exchange.Now()) > 0, true)
}

func TestKeyOfAHash(t *testing.T) {
	for _, c := range []struct {
		setting string
		a, b    []exchangetest.Option
		same    bool
	}{
		{"hash:path", []exchangetest.Option{exchangetest.Head("GET", "/a?1")}, []exchangetest.Option{exchangetest.Head("GET", "/a?2")}, true},
		{"hash:path", []exchangetest.Option{exchangetest.Head("GET", "/a")}, []exchangetest.Option{exchangetest.Head("GET", "/b")}, false},
		{"hash:header:X-T", []exchangetest.Option{exchangetest.Head("GET", "/a", "x-t: 1")}, []exchangetest.Option{exchangetest.Head("GET", "/b", "X-T: 1"), exchangetest.From("192.0.2.9")}, true},
		{"hash:header:X-T", []exchangetest.Option{exchangetest.Head("GET", "/", "X-T: 1")}, []exchangetest.Option{exchangetest.Head("GET", "/", "X-T: 2")}, false},
		{"hash:header:Accept", []exchangetest.Option{exchangetest.Head("GET", "/", "Accept: 1")}, []exchangetest.Option{exchangetest.Head("GET", "/", "Accept: 2")}, false},
		{"hash:header:X-T", nil, []exchangetest.Option{exchangetest.From("192.0.2.9")}, false},
		{"hash:cookie:s", []exchangetest.Option{exchangetest.Head("GET", "/", "Cookie: a=1; s=2")}, []exchangetest.Option{exchangetest.Head("GET", "/", "Cookie: s=2")}, true},
		{"hash:cookie:s", []exchangetest.Option{exchangetest.Head("GET", "/", "Cookie: s=1")}, []exchangetest.Option{exchangetest.Head("GET", "/", "Cookie: s=2")}, false},
		{"client_ip_hash", nil, []exchangetest.Option{exchangetest.From("192.0.2.9")}, false},
		{"client_ip_hash", []exchangetest.Option{exchangetest.From("2001:db8::1")}, []exchangetest.Option{exchangetest.From("2001:db8::2")}, true},
	} {
		choice, what, _ := balance.Parse(c.setting)
		if what != "" {
			t.Fatal(what)
		}
		s := newServersWith(t, Policy{Balance: choice}, target("127.0.0.1:1", 1))
		same := s.key(exchangetest.New(t, c.a...)) == s.key(exchangetest.New(t, c.b...))
		equal(t, c.setting+" has the same key", same, c.same)
	}
}

// The time of an attempt does not begin while a filter still waits, such as for an auth
// server.
func TestAnAttemptBeginsBehindTheFilters(t *testing.T) {
	s := newServers(t, settings, target("127.0.0.1:1", 1))
	ex := exchangetest.New(t)
	ex.Times.Passed = ex.Times.Start + int64(time.Second)
	first, _, none := s.choose(ex, tried{})
	if first == nil {
		t.Fatal(none.Cause)
	}
	equal(t, "tried", ex.Times.Tried, ex.Times.Passed)
	first.released()
}

// The time that a request has waited for a server is not that of the server, also on a
// kept connection.
func TestTheTimeInTheQueueIsNotThatOfTheAttempt(t *testing.T) {
	s := newServers(t, settings, target(serve(t, "x"), 1))
	exchangetest.Run(t, exchangetest.New(t), s)
	equal(t, "kept", s.list[0].pool.Idle(), 1)
	ex := exchangetest.New(t)
	ex.Limits.RequestTimeout = time.Minute
	ex.Times.Passed = ex.Times.Start
	ex.Times.Start -= int64(time.Hour)
	equal(t, "status", exchangetest.Run(t, ex, s).Status, 200)
	equal(t, "dialed", ex.Times.Dialed, 0)
}

// TestCircuitOfALaterPlan checks that a request which began under a plan without a breaker
// gets an answer when a later plan has one and its circuit is open: servers are shared by
// both. Random lives found it (issue 34).
func TestCircuitOfALaterPlan(t *testing.T) {
	h := newHouse(slog.New(slog.DiscardHandler))
	defer h.close()
	targets := []Target{target("127.0.0.1:1", 1)} // nobody listens there
	h.serve(targets, Settings{}, Policy{Proxy: "site", Route: "/"})
	before := h.source.Load()
	breaker := &health.Breaker{ErrorPercent: 1, Window: unit.Duration(time.Minute), MinRequests: 1, Status: "500-599", OpenTime: unit.Duration(time.Minute), Probes: 1}
	h.serve(targets, Settings{}, Policy{Proxy: "site", Route: "/", Health: Health{Breaker: breaker}})
	after := h.source.Load()
	ask := func(s *Servers) *exchange.Answer {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/"))
		ex.Limits.ConnectTimeout = time.Second
		return s.Respond(ex)
	}
	ask(after)
	if a := ask(after); a == nil || a.Reason != exchange.CircuitOpen {
		t.Fatalf("the circuit is not open: %+v", a)
	}
	if a := ask(before); a == nil || a.Reason != exchange.CircuitOpen {
		t.Errorf("a request of the plan before: %+v", a)
	}
}
