package metrics

import (
	"bytes"
	"flag"
	"math"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"headgate/internal/exchange"
)

//go:generate go test -run TestReferencePageIsFresh -update .
var update = flag.Bool("update", false, "write the generated files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func done(status int, reason exchange.Reason, d time.Duration) *exchange.Exchange {
	ex := &exchange.Exchange{Reason: reason, Sent: 100, Received: 10}
	ex.Request.Method = "GET"
	ex.Response.Status, ex.Response.HeadSent = status, true
	ex.Times.Start, ex.Times.End = 1, 1+int64(d)
	return ex
}

// page returns the lines of the page that begin with prefix.
func page(t *testing.T, r *Registry, prefix string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestPageShowsWhatWasCounted(t *testing.T) {
	r := New(Build{Version: "1.2.3", Revision: "abc"})
	route := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/api"})
	route.Done(done(200, exchange.None, 2*time.Millisecond))
	route.Done(done(200, exchange.None, 20*time.Second))
	route.Done(done(502, exchange.UpstreamRefused, time.Millisecond))
	gone := done(0, exchange.ClientClosed, 0)
	gone.Response.HeadSent = false
	route.Done(gone)
	route.Done(done(101, exchange.None, time.Hour))
	server := r.Server("shop", "/api", "http://127.0.0.1:3000")
	server.Tried(exchange.None, 300*time.Microsecond)
	server.Tried(exchange.UpstreamRefused, time.Hour)
	port := r.Port("web")
	port.Opened()
	port.Opened()
	port.Closed()
	r.Applied(true)
	r.Applied(false)
	r.InForce(false)
	r.AccessLog(func() uint64 { return 7 })

	got := regexp.MustCompile(`(goversion|last_apply_timestamp_seconds)([="{ ]+)[^",}\n]+`).ReplaceAllString(page(t, r, "headgate_"), "$1${2}X")
	want := `headgate_access_log_dropped_total 7
headgate_build_info{goversion="X",revision="abc",version="1.2.3"} 1
headgate_config_applies_total{result="applied"} 1
headgate_config_applies_total{result="refused"} 1
headgate_config_last_apply_successful 0
headgate_config_last_apply_timestamp_seconds X
headgate_connections_accepted_total{port="web"} 2
headgate_connections_at_limit{port="web"} 0
headgate_connections_open{port="web"} 1
headgate_connections_yielded_total{port="web"} 0
headgate_memory_refused_total{port="web"} 0
headgate_received_bytes_total{port="web",proxy="shop",route="/api"} 50
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.0001"} 1
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.00025"} 1
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.0005"} 1
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.001"} 2
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.0025"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.005"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.01"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.025"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.1"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="0.5"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="2.5"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="10"} 3
headgate_request_duration_seconds_bucket{port="web",proxy="shop",route="/api",le="+Inf"} 4
headgate_request_duration_seconds_sum{port="web",proxy="shop",route="/api"} 20.003
headgate_request_duration_seconds_count{port="web",proxy="shop",route="/api"} 4
headgate_requests_total{port="web",proxy="shop",reason="",route="/api",status_class="1xx"} 1
headgate_requests_total{port="web",proxy="shop",reason="",route="/api",status_class="2xx"} 2
headgate_requests_total{port="web",proxy="shop",reason="client_closed",route="/api",status_class="4xx"} 1
headgate_requests_total{port="web",proxy="shop",reason="upstream_refused",route="/api",status_class="5xx"} 1
headgate_responses_total{method="GET",port="web",proxy="shop",route="/api",status="101"} 1
headgate_responses_total{method="GET",port="web",proxy="shop",route="/api",status="200"} 2
headgate_responses_total{method="GET",port="web",proxy="shop",route="/api",status="499"} 1
headgate_responses_total{method="GET",port="web",proxy="shop",route="/api",status="502"} 1
headgate_sent_bytes_total{port="web",proxy="shop",route="/api"} 500
headgate_upstream_attempts_total{proxy="shop",route="/api",server="http://127.0.0.1:3000"} 2
headgate_upstream_errors_total{proxy="shop",reason="upstream_refused",route="/api",server="http://127.0.0.1:3000"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.0001"} 0
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.00025"} 0
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.0005"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.001"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.0025"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.005"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.01"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.025"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.1"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="0.5"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="2.5"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="10"} 1
headgate_upstream_first_byte_seconds_bucket{proxy="shop",route="/api",server="http://127.0.0.1:3000",le="+Inf"} 1
headgate_upstream_first_byte_seconds_sum{proxy="shop",route="/api",server="http://127.0.0.1:3000"} 0.0003
headgate_upstream_first_byte_seconds_count{proxy="shop",route="/api",server="http://127.0.0.1:3000"} 1
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if page(t, r, "go_goroutines") == "" {
		t.Error("the metrics of the Go runtime are missing")
	}
	if problems, err := testutil.CollectAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// TestARouteStandsThereFromItsFirstRequest spares readers of a large configuration most of
// the page.
func TestARouteStandsThereFromItsFirstRequest(t *testing.T) {
	r := New(Build{})
	route := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	names := []string{"headgate_requests_total{", "headgate_request_duration_seconds_bucket{", "headgate_sent_bytes_total{", "headgate_received_bytes_total{"}
	for _, name := range names {
		if got := page(t, r, name); got != "" {
			t.Errorf("before any request: %s", got)
		}
	}
	route.Done(done(0, exchange.ClientClosed, 0))
	for _, name := range names {
		if got := page(t, r, name); got == "" {
			t.Errorf("no %s after a request", name)
		}
	}
}

func TestRetiredHandlesDisappear(t *testing.T) {
	r := New(Build{})
	place := exchange.Place{Port: "web", Proxy: "shop", Route: "/"}
	first, second := r.Route(place), r.Route(place)
	if first != second {
		t.Error("equal places have two handles")
	}
	first.Retire()
	second.Done(done(200, exchange.None, 0))
	if page(t, r, "headgate_requests_total") == "" {
		t.Error("the route is gone while a plan uses it")
	}
	second.Retire()
	server, port := r.Server("shop", "/", "http://x"), r.Port("web")
	server.Tried(exchange.None, 0)
	server.Retire()
	port.Retire()
	if got := page(t, r, "headgate_requests") + page(t, r, "headgate_upstream") + page(t, r, "headgate_connections"); got != "" {
		t.Errorf("still on the page:\n%s", got)
	}
	second.Done(done(200, exchange.None, 0)) // an exchange under way
}

func TestNothingIsLostWhenARouteGetsHot(t *testing.T) {
	r := New(Build{})
	route := r.Route(exchange.Place{})
	server := r.Server("", "", "")
	const goroutines, each = 8, 3 * hotAfter
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			ex, bad := done(200, exchange.None, time.Millisecond), done(429, exchange.RateLimited, time.Millisecond)
			for range each {
				route.Done(ex)
				route.Done(bad)
				server.Tried(exchange.UpstreamReset, 0)
			}
		})
	}
	group.Wait()
	total := route.sum()
	const want = goroutines * each
	if total.requests[2] != want || total.answers[exchange.RateLimited][4] != want || total.duration.count != 2*want {
		t.Errorf("got %d, %d, %d, want %d each, twice at last",
			total.requests[2], total.answers[exchange.RateLimited][4], total.duration.count, want)
	}
	if attempts, errors := server.attempts(); attempts != want || errors[exchange.UpstreamReset] != want {
		t.Errorf("got %d attempts, %d errors, want %d", attempts, errors[exchange.UpstreamReset], want)
	}
}

// Very many requests go to other routes in turn, and each waits for the memory of its own:
// a cell more than these is a wait more.
func TestCellsFitInCacheLines(t *testing.T) {
	if n := unsafe.Sizeof(cell[routeNumbers]{}); n != 128 {
		t.Errorf("the numbers of a route take %d bytes, want 128", n)
	}
	if n := unsafe.Sizeof(cell[serverNumbers]{}); n != 64 {
		t.Errorf("the numbers of a server take %d bytes, want 64", n)
	}
}

func TestNativeBucketsHoldTheirBounds(t *testing.T) {
	for _, d := range []time.Duration{1, 7629, 7630, 9000, time.Microsecond, time.Millisecond, 999 * time.Millisecond,
		time.Second, time.Second + 1, 1189 * time.Millisecond, 1190 * time.Millisecond, time.Hour, 1000 * time.Hour} {
		h := histogramOf(d)
		var out dto.Histogram
		h.write(&out)
		seconds := d.Seconds()
		if h.zero == 1 {
			if seconds > math.Ldexp(1, lowestExp) {
				t.Errorf("%v counts as zero", d)
			}
			continue
		}
		key := int(*out.PositiveSpan[0].Offset)
		upper, lower := math.Exp2(float64(key)/4), math.Exp2(float64(key-1)/4)
		if key != highest && (seconds <= lower || seconds > upper*(1+1e-12)) || key > highest {
			t.Errorf("%v is in bucket %d: (%v, %v]", d, key, lower, upper)
		}
	}
}

func TestNativeSpansDescribeTheCounts(t *testing.T) {
	h := histogramOf(time.Millisecond, time.Millisecond, 1100*time.Microsecond, time.Second)
	var out dto.Histogram
	h.write(&out)
	got, key, count := map[int]int64{}, 0, int64(0)
	deltas := out.PositiveDelta
	for _, span := range out.PositiveSpan {
		key += int(*span.Offset)
		for range *span.Length {
			count += deltas[0]
			deltas = deltas[1:]
			got[key] = count
			key++
		}
	}
	want := map[int]int64{}
	for i, n := range h.native {
		if n > 0 {
			want[i+lowestKey] = int64(n)
		}
	}
	if len(got) != len(want) || len(deltas) != 0 {
		t.Fatalf("got %v, want %v", got, want)
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("bucket %d: got %d, want %d", k, got[k], n)
		}
	}
}

func TestAllReasonsFit(t *testing.T) {
	if n := len(exchange.Reasons()) + 1; n != reasons {
		t.Errorf("there are %d reasons, the table has room for %d", n, reasons)
	}
}

func TestReferencePageIsFresh(t *testing.T) {
	const path = "../../docs/reference/metrics.md"
	want := []byte(referencePage())
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go generate ./internal/metrics", path)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := New(Build{})
	route, ex := r.Route(exchange.Place{}), done(200, exchange.None, time.Millisecond)
	for range 2 * hotAfter {
		route.Done(ex)
	}
	if n := testing.AllocsPerRun(2000, func() { route.Done(ex) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDone(b *testing.B) {
	r := New(Build{})
	route := r.Route(exchange.Place{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ex := done(200, exchange.None, 3*time.Millisecond)
		for pb.Next() {
			route.Done(ex)
		}
	})
}

func BenchmarkTried(b *testing.B) {
	server := New(Build{}).Server("", "", "")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			server.Tried(exchange.None, 3*time.Millisecond)
		}
	})
}

func TestFloodsAreCountedByTheirWord(t *testing.T) {
	r := New(Build{})
	r.Flooded("ping_flood")
	r.Flooded("ping_flood")
	r.Flooded("reset_flood")
	body := page(t, r, "headgate_floods")
	for _, want := range []string{`headgate_floods_total{flood="ping_flood"} 2`, `headgate_floods_total{flood="reset_flood"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no line %s", want)
		}
	}
}

func TestWhatALimitObservesIsCounted(t *testing.T) {
	r := New(Build{})
	route := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/api"})
	if got := page(t, r, "headgate_rate_limit"); got != "" {
		t.Errorf("without a limit: %s", got)
	}
	over := done(200, exchange.None, time.Millisecond)
	over.Observed = true
	route.Done(over)
	route.Done(done(200, exchange.None, time.Millisecond))
	route.Done(over)
	if got, want := page(t, r, "headgate_rate_limit"), `headgate_rate_limit_observed_total{port="web",proxy="shop",route="/api"} 2`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestMethodsAndStatusesHaveFewValues holds that neither clients nor servers can make
// series without end.
func TestMethodsAndStatusesHaveFewValues(t *testing.T) {
	r := New(Build{})
	route := r.Route(exchange.Place{Port: "web", Proxy: "shop", Route: "/"})
	for i := range 2000 {
		ex := done(i%1000, exchange.None, time.Millisecond)
		ex.Request.Method = []string{"GET", "BREW", "M" + strconv.Itoa(i)}[i%3]
		route.Done(ex)
	}
	got := page(t, r, "headgate_responses_total")
	if n := strings.Count(got, "\n"); n > 2*maxStatuses {
		t.Errorf("%d series", n)
	}
	for _, want := range []string{`method="GET",port="web",proxy="shop",route="/",status="200"`, `method="other",port="web",proxy="shop",route="/",status="2xx"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if len(statusNames) > maxStatuses {
		t.Errorf("%d statuses, room for %d", len(statusNames), maxStatuses)
	}
}

func TestLostDatagramsAreCountedByDirection(t *testing.T) {
	r := New(Build{})
	port := r.Port("web")
	if got := page(t, r, "headgate_datagrams"); got != "" {
		t.Errorf("without any, got %s", got)
	}
	port.DatagramLost(true)
	port.DatagramLost(true)
	port.DatagramLost(false)
	body := page(t, r, "headgate_datagrams")
	for _, want := range []string{`headgate_datagrams_lost_total{direction="send",port="web"} 2`, `headgate_datagrams_lost_total{direction="receive",port="web"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no line %s:\n%s", want, body)
		}
	}
}
