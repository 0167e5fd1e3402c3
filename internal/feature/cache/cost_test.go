package cache

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
)

// silent is a front that takes everything and keeps nothing.
type silent struct{ exchangetest.Front }

func (*silent) Send(ex *exchange.Exchange) error {
	ex.Sent = int64(len(ex.Response.Text))
	return nil
}

// again readies an exchange for the next request, as a front does.
func nextRequest(ex *exchange.Exchange, conn *exchange.Conn, front exchange.Front, place *exchange.Place, target string) {
	ex.Reset(conn, front)
	ex.Place = place
	rq := &ex.Request
	rq.Method, rq.Scheme, rq.Host, rq.Path, rq.Target, rq.Proto = "GET", "http", "example.com", target, target, exchange.HTTP11
	rq.Header.Add(header.AcceptEncoding, "gzip, deflate, br, zstd")
	rq.Header.Add(header.UserAgent, "test")
}

// hitting returns a function that takes one hit through a pipeline.
func hitting(t testing.TB, size int) func() {
	s := newStage(t, settings(func(c *Config) { c.MemoryLimit = 256 * unit.MiB }))
	s.origin.reply = answer("200|Cache-Control: max-age=3600|Date: {0}|ETag: \"abc\"|Content-Type: text/html|Vary: Accept-Encoding|Content-Encoding: br||"+
		strings.Repeat("x", size), s.clock)
	conn, front, place := &exchange.Conn{Scheme: "http", Peer: "192.0.2.1"}, &silent{}, &exchange.Place{Proxy: "p", Route: "/"}
	p := &exchange.Pipeline{Filters: []exchange.Filter{s.cache.Filter()}, Source: s.cache}
	ex := &exchange.Exchange{}
	one := func() {
		nextRequest(ex, conn, front, place, "/page")
		p.Serve(ex)
	}
	one()
	one()
	if ex.Cache.Use != exchange.CacheHit || ex.Sent != int64(size) {
		t.Fatalf("%v, %d bytes", ex.Cache.Use, ex.Sent)
	}
	return one
}

func TestHitAllocatesNothing(t *testing.T) {
	for _, size := range []int{0, 1 << 10, 64 << 10} {
		one := hitting(t, size)
		if n := testing.AllocsPerRun(200, one); n > 0 {
			t.Errorf("%d bytes: %v allocations a hit", size, n)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			one := hitting(b, size)
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
}

func FuzzCacheControl(f *testing.F) {
	for _, s := range []string{"max-age=1", `private="a, b", no-cache`, `x="\", max-age=3"`, "no-store;", ",,=,\"", "max-age=\"1", "s-maxage=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d directives
		d.value(s)
		for _, n := range []int64{d.maxAge, d.sMaxage, d.minFresh, d.maxStale, d.whileRevalidate, d.ifError} {
			if n < 0 || n > longest {
				t.Errorf("%q: %d seconds", s, n)
			}
		}
		// A word that forbids is never overlooked when it stands alone at the end.
		var e directives
		if strings.Count(s, `"`) == 0 {
			if e.value(s + ",no-store"); e.has&noStore == 0 {
				t.Errorf("%q hides no-store", s)
			}
		}
	})
}

func FuzzTargeted(f *testing.F) {
	for _, s := range []string{"max-age=1", `a=(1 2);b, c="x"`, "?1", "a=:YQ==:", "max-age=1;x=2", "a=@1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var list header.List
		list.Add(header.CDNCacheControl, s)
		var d directives
		if d.targeted(&list) && (d.maxAge < 0 || d.maxAge > longest) {
			t.Errorf("%q: %d seconds", s, d.maxAge)
		}
	})
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { parseDate(s) })
}
