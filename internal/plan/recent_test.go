package plan

import (
	"testing"

	"headgate/internal/accesslog/recent"
	"headgate/internal/exchange"
	"headgate/internal/metrics"
)

const recentText = "proxies:\n" +
	"  shop: {virtual_hosts: [a.example], routes: [{path: /x, fixed_response: {status: 204}}]}\n" +
	"  quiet: {virtual_hosts: [q.example], access_log: {enabled: false}, routes: [{fixed_response: {status: 204}}]}\n"

// Recent requests are kept whether they are logged or not; those of a proxy that
// switches its access log off are not.
func TestRecentRequestsAreKept(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{recentText, 3},
		{"access_log: {enabled: false}\n" + recentText, 3},
	} {
		ring := recent.New(recent.Config{Size: recent.MinSize})
		p := compileIn(t, c.text, House{Recent: ring})
		web := p.Port("web")
		request(web, "GET", "a.example", "/x/y")
		request(web, "GET", "q.example", "/y")
		request(web, "GET", "other.example", "/y")
		request(web, "GET", "a.example", "/%")
		got := ring.Find(recent.Query{}, recent.Cursor{}, 10).Requests
		if len(got) != c.want {
			t.Errorf("%d requests are kept, want %d: %+v", len(got), c.want, got)
		}
		for _, rq := range got {
			if rq.Proxy == "quiet" {
				t.Errorf("a request of a proxy whose log is off is kept: %+v", rq)
			}
		}
		p.Retire(nil)
	}
}

// A proxy that is carried over into a plan with another ring would fill the old one.
func TestAnotherRingIsHeardOf(t *testing.T) {
	one, two := recent.New(recent.Config{Size: recent.MinSize}), recent.New(recent.Config{Size: recent.MinSize})
	cfg := load(t, recentText)
	first, _ := Compile(cfg, nil, House{Recent: one}, nil)
	second, _ := Compile(cfg, first, House{Recent: two}, nil)
	third, _ := Compile(cfg, second, House{}, nil)
	request(second.Port("web"), "GET", "a.example", "/x")
	request(third.Port("web"), "GET", "a.example", "/x")
	count := func(r *recent.Ring) int { return len(r.Find(recent.Query{}, recent.Cursor{}, 10).Requests) }
	if count(one) != 0 || count(two) != 1 {
		t.Errorf("the old ring has %d, the new %d, want 0 and 1", count(one), count(two))
	}
	first.Retire(second)
	second.Retire(third)
	third.Retire(nil)
}

// BenchmarkDone is what is told of a plain request when it is over.
func BenchmarkDone(b *testing.B) {
	for _, c := range []struct {
		name string
		ring *recent.Ring
	}{{"off", nil}, {"recent", recent.New(recent.Config{})}} {
		b.Run(c.name, func(b *testing.B) {
			web := compileIn(b, recentText, House{Metrics: metrics.New(metrics.Build{}), Recent: c.ring}).Port("web")
			conn := *client
			ex, front := &exchange.Exchange{}, &sent{}
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(&conn, front)
				ex.Place = web.Front().Place
				ex.Request.Method, ex.Request.Scheme, ex.Request.Host, ex.Request.Path = "GET", "http", "a.example", "/x"
				r, _ := web.selectRoute(ex)
				ex.Place = &r.place
				r.pipeline.Finish(ex)
			}
		})
	}
}

// TestDoneAllocatesNothing holds that for the memory of recent requests.
func TestDoneAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what a sync.Pool holds")
	}
	ring := recent.New(recent.Config{Size: recent.MinSize})
	web := compileIn(t, recentText, House{Recent: ring}).Port("web")
	conn := *client
	ex, front := &exchange.Exchange{}, &sent{}
	one := func() {
		ex.Reset(&conn, front)
		ex.Request.Method, ex.Request.Scheme, ex.Request.Host, ex.Request.Path = "GET", "http", "a.example", "/x"
		r, _ := web.selectRoute(ex)
		ex.Place = &r.place
		r.pipeline.Finish(ex)
	}
	for range 20_000 {
		one() // until all memory is there
	}
	if n := testing.AllocsPerRun(5000, one); n != 0 {
		t.Errorf("%v allocations for each request, want 0", n)
	}
}
