package metrics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/exchange"
)

// charted is a series with a clock that a test moves.
type charted struct {
	*testing.T
	*Registry
	*Series
	now time.Time
}

func chart(t *testing.T, limit int) *charted {
	r := New(Build{})
	c := &charted{t, r, NewSeries(r, limit), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.Sample(c.now)
	return c
}

// step ends the step that is under way.
func (c *charted) step() {
	c.now = c.now.Add(FineStep)
	c.Sample(c.now)
}

func ended(status int, took time.Duration) *exchange.Exchange {
	ex := &exchange.Exchange{Received: 10, Sent: 100}
	ex.Response.Status = status
	ex.Times.Start, ex.Times.End = 1, 1+int64(took)
	return ex
}

func TestASeriesTellsWhatHappenedInEachStep(t *testing.T) {
	c := chart(t, 0)
	web := c.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	tls := c.Route(exchange.Place{Port: "tls", Proxy: "shop", Route: "/"})
	none := c.Route(exchange.Place{Port: "web"})
	server := c.Server("shop", "/", "http://127.0.0.1:1")
	sessions := exchange.StreamCounts{}
	c.Stream("tcp", "db", func() exchange.StreamCounts { return sessions })

	for range 98 {
		web.Done(ended(200, 10*time.Millisecond))
	}
	tls.Done(ended(404, 10*time.Millisecond))
	tls.Done(ended(502, time.Second))
	none.Done(ended(404, time.Millisecond))
	server.Tried(exchange.None, 0)
	server.Tried(exchange.Reasons()[0], 0)
	sessions = exchange.StreamCounts{Accepted: 3, Received: 5, Sent: 7, Errors: map[exchange.Reason]uint64{exchange.Reasons()[0]: 2}}
	c.step()
	c.step() // nothing happens
	hit := ended(200, time.Millisecond)
	hit.Cache.Use = exchange.CacheHit
	web.Done(hit)
	c.step()

	begin := c.now.Add(-3 * FineStep)
	shop := c.Find(Scope{Kind: ScopeHTTP, Proxy: "shop"}, time.Time{}, FineStep)
	if !shop.Begin.Equal(begin) || len(shop.Points) != 3 {
		t.Fatalf("got %d points from %v on, want 3 from %v on", len(shop.Points), shop.Begin, begin)
	}
	first := shop.Points[0]
	if p := first.P50; p < 9*time.Millisecond || p > 11*time.Millisecond {
		t.Errorf("the median is %v, want about 10ms", p)
	}
	first.P50, first.P99 = 0, 0
	if want := (Point{Requests: 100, ClientErrors: 1, ServerErrors: 1, Received: 1000, Sent: 10000}); first != want {
		t.Errorf("got %+v, want %+v", first, want)
	}
	if shop.Points[1] != (Point{}) {
		t.Errorf("nothing happened, but %+v", shop.Points[1])
	}
	if p := shop.Points[2]; p.Requests != 1 || p.CacheHits != 1 {
		t.Errorf("got %+v, want one hit", p)
	}
	if whole := c.Find(Scope{}, time.Time{}, FineStep).Points[0]; whole.Requests != 101 || whole.ClientErrors != 2 {
		t.Errorf("the whole is %+v, want 101 requests and 2 errors", whole)
	}
	if p := c.Find(Scope{ScopeHTTP, "shop", "http://127.0.0.1:1"}, time.Time{}, FineStep).Points[0]; p != (Point{Requests: 2, ServerErrors: 1}) {
		t.Errorf("the server has %+v, want two attempts, one failed", p)
	}
	if p := c.Find(Scope{Kind: ScopeTCP, Proxy: "db"}, time.Time{}, FineStep).Points[0]; p != (Point{Requests: 3, ServerErrors: 2, Received: 5, Sent: 7}) {
		t.Errorf("the stream has %+v", p)
	}
	if p := c.Recent(Scope{Kind: ScopeHTTP, Proxy: "shop"}); p.Requests != 101 || p.ServerErrors != 1 {
		t.Errorf("recently %+v, want 101 requests and an error", p)
	}
	if p := c.Recent(Scope{Kind: ScopeHTTP, Proxy: "other"}); p != (Point{}) {
		t.Errorf("a proxy without requests has %+v", p)
	}
}

// TestTheCacheOfARoute: its requests and hits have a series and sums of their own, over all
// ports. Those before the first sample are in the sums only.
func TestTheCacheOfARoute(t *testing.T) {
	use := func(h *Route, n int, use exchange.CacheUse) {
		for range n {
			ex := ended(200, time.Millisecond)
			ex.Cache.Use = use
			h.Done(ex)
		}
	}
	r := New(Build{})
	web := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/a"})
	use(web, 5, exchange.CacheHit)
	c := &charted{t, r, NewSeries(r, 0), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.Sample(c.now)
	tls := c.Route(exchange.Place{Port: "tls", Proxy: "shop", Route: "/a"})
	other := c.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/b"})
	use(web, 3, exchange.CacheHit)
	use(tls, 2, exchange.CacheStale)
	use(tls, 4, exchange.CacheMiss)
	use(web, 1, exchange.CachePass)
	use(other, 1, exchange.CacheMiss)
	other.Done(ended(200, time.Millisecond)) // without a cache
	c.step()
	use(web, 1, exchange.CacheHit)
	c.step()

	for route, want := range map[string][2]Point{"/a": {{Requests: 10, CacheHits: 5}, {Requests: 1, CacheHits: 1}}, "/b": {{Requests: 1}, {}}} {
		line := c.Find(Scope{Kind: ScopeCache, Proxy: "shop", Server: route}, time.Time{}, FineStep)
		if len(line.Points) != 2 || line.Points[0] != want[0] || line.Points[1] != want[1] {
			t.Errorf("%s: got %+v, want %+v", route, line.Points, want)
		}
	}
	uses := c.CacheUses()[exchange.Place{Proxy: "shop", Route: "/a"}]
	if uses == nil || uses.Of(exchange.CacheHit) != 9 || uses.Of(exchange.CacheStale) != 2 || uses.Of(exchange.CacheMiss) != 4 || uses.Of(exchange.CachePass) != 1 {
		t.Errorf("got %v", uses)
	}
}

func TestMinutesAreSumsOfTheirSteps(t *testing.T) {
	c := chart(t, 0)
	h := c.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	for i := range 13 { // two minutes and a step
		if i != 2 {
			h.Done(ended(200, time.Duration(i+1)*time.Millisecond))
		}
		c.step()
	}
	got := c.Find(Scope{Kind: ScopeHTTP, Proxy: "shop"}, time.Time{}, CoarseStep)
	if len(got.Points) != 2 || got.Points[0].Requests != 5 || got.Points[1].Requests != 6 {
		t.Fatalf("got %+v, want minutes of 5 and 6 requests", got)
	}
	if p := got.Points[1].P99; p < 10*time.Millisecond || p > 14*time.Millisecond {
		t.Errorf("the 99th percentile of 7 to 12 ms is %v", p)
	}
	for range 12 {
		c.step() // the minute that was begun ends without further requests
	}
	if got := c.Find(Scope{}, time.Time{}, CoarseStep); len(got.Points) != 4 || got.Points[2].Requests != 1 || got.Points[3].Requests != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOldPointsAreForgotten(t *testing.T) {
	c := chart(t, 0)
	h := c.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	scope := Scope{Kind: ScopeHTTP, Proxy: "shop"}
	for range int(2 * FinePeriod / FineStep) {
		h.Done(ended(200, time.Millisecond))
		c.step()
	}
	if n := len(c.Find(scope, time.Time{}, FineStep).Points); n != int(FinePeriod/FineStep) {
		t.Errorf("%d fine points, want an hour of them", n)
	}
	if n := len(c.Find(scope, time.Time{}, CoarseStep).Points); n != 120 {
		t.Errorf("%d minutes, want two hours of them", n)
	}
	if n := len(c.Find(scope, c.now.Add(-time.Minute), FineStep).Points); n != 6 {
		t.Errorf("%d points of the last minute, want 6", n)
	}
	c.now = c.now.Add(CoarsePeriod)
	c.step()
	c.step()
	if n := len(c.Series.mu.tracks); n != 0 || c.Memory() != 0 {
		t.Errorf("%d tracks and %d bytes are left after a day without requests", n, c.Memory())
	}
}

// TestMemoryOfASeriesIsBounded counts for more proxies than the memory has room for.
func TestMemoryOfASeriesIsBounded(t *testing.T) {
	const proxies, limit = 200, 1 << 20
	c := chart(t, limit)
	var routes []*Route
	for i := range proxies {
		routes = append(routes, c.Route(exchange.Place{Port: "web", Proxy: fmt.Sprint("p", i), Route: "/"}))
	}
	for range 400 {
		for _, h := range routes {
			h.Done(ended(200, time.Millisecond))
		}
		c.step()
	}
	if c.Memory() > limit+limit/10 {
		t.Errorf("%d bytes, want about %d at most", c.Memory(), limit)
	}
	line := c.Find(Scope{Kind: ScopeHTTP, Proxy: "p7"}, time.Time{}, FineStep)
	if len(line.Points) < 30 {
		t.Fatalf("only %d points are kept", len(line.Points))
	}
	for i, p := range line.Points {
		if p.Requests != 1 {
			t.Fatalf("point %d of %d: got %+v, want a request", i, len(line.Points), p)
		}
	}
}

func TestAClockThatIsSetBackBeginsAnew(t *testing.T) {
	c := chart(t, 0)
	h := c.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	h.Done(ended(200, time.Millisecond))
	c.step()
	c.now = c.now.Add(-time.Hour)
	c.step()
	h.Done(ended(200, time.Millisecond))
	c.step()
	if got := c.Find(Scope{}, time.Time{}, FineStep); len(got.Points) != 1 || got.Points[0].Requests != 1 {
		t.Errorf("got %+v, want the one point since", got)
	}
}

func TestRunSamplesAtTheEndOfEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Build{})
		s := NewSeries(r, 0)
		h := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		synctest.Wait()
		h.Done(ended(200, time.Millisecond))
		time.Sleep(2 * FineStep)
		synctest.Wait()
		if got := s.Find(Scope{}, time.Time{}, FineStep); len(got.Points) != 2 || got.Points[0].Requests != 1 {
			t.Errorf("got %+v, want two points", got)
		}
		cancel()
		<-done
	})
}

// A sample makes no garbage for those of whom nothing was counted, and little for others.
func TestASampleMakesLittleGarbage(t *testing.T) {
	const many = 1000
	c := chart(t, 0)
	routes := make([]*Route, many)
	for i := range routes {
		routes[i] = c.Route(exchange.Place{Port: "web", Proxy: fmt.Sprint("proxy", i), Route: "/"})
	}
	for range 2 * coarseSteps {
		for _, h := range routes {
			h.Done(ended(200, 10*time.Millisecond))
		}
		c.step()
	}
	if n := testing.AllocsPerRun(10, c.step); n > many/10 {
		t.Errorf("%v allocations while nothing happens", n)
	}
	busy := testing.AllocsPerRun(10, func() {
		for _, h := range routes {
			h.Done(ended(200, 10*time.Millisecond))
		}
		c.step()
	})
	if busy -= many; busy > 3*many { // one is the test's own exchange; points are kept
		t.Errorf("%v allocations for %d routes", busy, many)
	}
}

func BenchmarkSampleTenThousandProxies(b *testing.B) {
	r := New(Build{})
	s := NewSeries(r, 0)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.Sample(now)
	var routes []*Route
	for i := range 10_000 {
		routes = append(routes, r.Route(exchange.Place{Port: "web", Proxy: fmt.Sprint("p", i), Route: "/"}))
	}
	for b.Loop() {
		b.StopTimer()
		for _, h := range routes {
			h.Done(ended(200, time.Millisecond))
		}
		b.StartTimer()
		now = now.Add(FineStep)
		s.Sample(now)
	}
	b.ReportMetric(float64(s.Memory())/10_000, "B/proxy")
}
