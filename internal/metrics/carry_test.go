package metrics

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
)

// TestCountersGoOnInAnotherProcess holds that the page of a new process has the sum of its
// own numbers and those of the old one, of which a later export replaces the first.
func TestCountersGoOnInAnotherProcess(t *testing.T) {
	shop := exchange.Place{Port: "web", Proxy: "shop", Route: "/"}
	gone := exchange.Place{Port: "web", Proxy: "gone", Route: "/"}
	old := New(Build{})
	one := old.Route(shop)
	one.Done(done(200, exchange.None, 2*time.Millisecond))
	old.Route(gone).Done(done(200, exchange.None, time.Second))
	old.Port("web").Opened()
	data, err := old.Export()
	if err != nil {
		t.Fatal(err)
	}
	now := New(Build{})
	now.Route(shop).Done(done(200, exchange.None, 3*time.Second))
	if err := now.Import(data); err != nil {
		t.Fatal(err)
	}
	check := func(r *Registry, lines ...string) {
		t.Helper()
		all := page(t, r, "headgate_")
		for _, line := range lines {
			if !strings.Contains(all, line+"\n") {
				t.Errorf("%s is missing in\n%s", line, all)
			}
		}
	}
	const labels = `{port="web",proxy="shop",route="/"}`
	check(now,
		`headgate_requests_total{port="web",proxy="shop",reason="",route="/",status_class="2xx"} 2`,
		`headgate_requests_total{port="web",proxy="gone",reason="",route="/",status_class="2xx"} 1`,
		`headgate_request_duration_seconds_count`+labels+` 2`,
		`headgate_request_duration_seconds_sum`+labels+` 3.002`,
		`headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/",le="0.0025"} 1`,
	)
	if strings.Contains(page(t, now, "headgate_connections{"), " 1") {
		t.Error("open connections of the old process are those of the new one")
	}
	one.Done(done(200, exchange.None, 2*time.Millisecond)) // the old one drains
	if data, err = old.Export(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // each replaces the one before
		if err := now.Import(data); err != nil {
			t.Fatal(err)
		}
	}
	check(now, `headgate_requests_total{port="web",proxy="shop",reason="",route="/",status_class="2xx"} 3`)

	// A third process gets the sum.
	if data, err = now.Export(); err != nil {
		t.Fatal(err)
	}
	third := New(Build{})
	if err := third.Import(data); err != nil {
		t.Fatal(err)
	}
	check(third, `headgate_requests_total{port="web",proxy="shop",reason="",route="/",status_class="2xx"} 3`, `headgate_request_duration_seconds_count`+labels+` 3`)
}

func FuzzImportCounters(f *testing.F) {
	r := New(Build{})
	r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"}).Done(done(200, exchange.None, time.Millisecond))
	data, err := r.Export()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		now := New(Build{})
		now.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"}).Done(done(200, exchange.None, time.Millisecond))
		if now.Import(data) == nil {
			now.Gather()
		}
	})
}
