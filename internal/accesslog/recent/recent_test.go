package recent

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = &exchange.Place{Port: "web", Proxy: "shop", Route: "/api"}

// finished returns an exchange that has ended.
func finished(serial uint64, path string, status int, took time.Duration) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Peer: "192.0.2.7", Remote: netip.MustParseAddrPort("192.0.2.7:4711"), Serial: serial}, nil)
	ex.Request.Method, ex.Request.Scheme, ex.Request.Host = "GET", "https", "Shop.Example.com:8443"
	ex.Request.Path, ex.Request.Query, ex.Request.Proto = path, "?a=b", exchange.HTTP2
	ex.Request.Header.Set(header.UserAgent, "Test Agent")
	ex.Place, ex.ClientIP = place, netip.MustParseAddr("198.51.100.9")
	ex.Server, ex.Attempts = "http://10.0.0.1:3000", 1
	ex.Response.Status, ex.Sent, ex.Received = status, 1234, 5
	now := exchange.Now()
	ex.Times = exchange.Times{Start: now - int64(took), Tried: now - int64(took), Head: now, End: now}
	return ex
}

// atlas says that every address is in Germany, in network 64500.
type atlas struct{}

func (atlas) Country(netip.Addr) string { return "DE" }
func (atlas) ASN(netip.Addr) uint32     { return 64500 }
func (atlas) Serial() uint64            { return 1 }

// TestRequestsAreFoundByCountryAndNetwork checks that a record has where its client is, also
// in another process, and that both are filters.
func TestRequestsAreFoundByCountryAndNetwork(t *testing.T) {
	r := New(Config{})
	r.Record(finished(1, "/nowhere", 200, time.Millisecond))
	located := finished(2, "/here", 200, time.Millisecond)
	located.Locator = atlas{}
	r.Record(located)
	other := New(Config{})
	data, _ := r.Export(1 << 20)
	other.Import(data)
	for _, ring := range []*Ring{r, other} {
		for _, q := range []Query{{Country: "de"}, {ASN: 64500}} {
			got := ring.Find(q, Cursor{}, 10).Requests
			if len(got) != 1 || got[0].Path != "/here" || got[0].Country != "DE" || got[0].ASN != 64500 {
				t.Errorf("%+v finds %+v", q, got)
			}
		}
		for _, q := range []Query{{Country: "FR"}, {ASN: 1}} {
			if got := ring.Find(q, Cursor{}, 10).Requests; len(got) != 0 {
				t.Errorf("%+v finds %+v", q, got)
			}
		}
	}
}

func TestFindTellsWhatWasRecorded(t *testing.T) {
	r := New(Config{})
	ex := finished(3, "/api/cart", 502, 250*time.Millisecond)
	ex.Reason, ex.Cause, ex.User = exchange.UpstreamReset, "read: connection reset", "ann"
	r.Record(ex)
	page := r.Find(Query{}, Cursor{}, 10)
	if len(page.Requests) != 1 || page.Next != (Cursor{}) {
		t.Fatalf("got %+v, want one request and no more", page)
	}
	got := page.Requests[0]
	if since := time.Since(got.Time); since < 200*time.Millisecond || since > time.Hour {
		t.Errorf("it began %v ago", since)
	}
	got.Time = time.Time{}
	want := Request{
		ID: ex.ID(), Protocol: "HTTP/2.0", Client: "198.51.100.9", Method: "GET", Scheme: "https",
		Host: "Shop.Example.com:8443", Path: "/api/cart", Query: "a=b", Status: 502, Reason: "upstream_reset",
		Cause: "read: connection reset", Port: "web", Proxy: "shop", Route: "/api", Server: "http://10.0.0.1:3000",
		Attempts: 1, User: "ann", UserAgent: "Test Agent", Sent: 1234, Received: 5, Duration: 250, Head: 250,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestQueriesFindWhatMatches(t *testing.T) {
	r := New(Config{})
	r.Record(finished(1, "/api/cart", 200, time.Millisecond))
	r.Record(finished(2, "/api/pay", 404, time.Millisecond))
	slow := finished(3, "/other", 200, 3*time.Second)
	r.Record(slow)
	denied := finished(4, "/admin", 403, time.Millisecond)
	denied.Reason, denied.ClientIP, denied.Request.Host = exchange.AddressDenied, netip.MustParseAddr("2001:db8::1"), "[2001:db8::9]:80"
	r.Record(denied)
	now := exchange.Now()
	r.RecordSession(&exchange.Session{Protocol: "tcp", Proxy: "postgres", Name: "db.example.com", Start: now - 5e6, Connected: now - 4e6, End: now, Client: netip.MustParseAddrPort("203.0.113.4:99"), Server: "10.0.0.2:5432"})

	for _, test := range []struct {
		name string
		q    Query
		want string // paths, or proxies of sessions, newest first
	}{
		{"all", Query{}, "postgres /admin /other /api/pay /api/cart"},
		{"host", Query{Host: "shop.example.COM"}, "/other /api/pay /api/cart"},
		{"host below", Query{Host: "*.example.com"}, "postgres /other /api/pay /api/cart"},
		{"IPv6 host", Query{Host: "[2001:db8::9]"}, "/admin"},
		{"proxy", Query{Proxy: "postgres"}, "postgres"},
		{"server", Query{Server: "10.0.0.2:5432"}, "postgres"},
		{"status", Query{StatusFrom: 404, StatusTo: 404}, "/api/pay"},
		{"status class", Query{StatusFrom: 400, StatusTo: 499}, "/admin /api/pay"},
		{"status up to", Query{StatusTo: 299}, "/other /api/cart"},
		{"reason", Query{Reason: "address_denied"}, "/admin"},
		{"any reason", Query{Reason: "any"}, "/admin"},
		{"client", Query{Client: netip.MustParsePrefix("198.51.100.0/24")}, "/other /api/pay /api/cart"},
		{"client IPv6", Query{Client: netip.MustParsePrefix("2001:db8::1/128")}, "/admin"},
		{"method", Query{Method: "GET", Path: "/api"}, "/api/pay /api/cart"},
		{"slower than", Query{SlowerThan: time.Second}, "/other"},
		{"request id", Query{ID: slow.ID()}, "/other"},
		{"text in the path", Query{Text: "CART"}, "/api/cart"},
		{"text in the agent", Query{Text: "test ag", StatusFrom: 404}, "/api/pay"},
		{"text nowhere", Query{Text: "nowhere"}, ""},
		{"since later", Query{Since: time.Now().Add(time.Hour)}, ""},
		{"until earlier", Query{Until: time.Now().Add(-time.Hour)}, ""},
	} {
		if got := names(r.Find(test.q, Cursor{}, 100).Requests); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func names(list []Request) string {
	var all []string
	for _, q := range list {
		if q.Path == "" {
			q.Path = q.Proxy
		}
		all = append(all, q.Path)
	}
	return strings.Join(all, " ")
}

func TestPagesFollowEachOther(t *testing.T) {
	r := New(Config{})
	want := ""
	for i := range 25 {
		r.Record(finished(uint64(i+1), fmt.Sprint("/", i), 200+i%2*300, 0))
		want = strings.TrimSpace(fmt.Sprint("/", i) + " " + want)
	}
	var got []string
	at := Cursor{}
	for range 10 {
		page := r.Find(Query{}, at, 7)
		got = append(got, names(page.Requests))
		if at = page.Next; at == (Cursor{}) {
			break
		}
	}
	if strings.Join(got, " ") != want || len(got) != 4 {
		t.Errorf("got %q, want 4 pages of %q", got, want)
	}
}

func TestTailsHaveEachRequestOnce(t *testing.T) {
	const all = MaxPage
	r := New(Config{})
	r.Record(finished(1, "/before", 500, 0))
	at := Until()
	for begun := exchange.Now(); at < begun; at = Until() {
		runtime.Gosched() // what has ended before is not in a tail
	}
	got, want := "", ""
	for i := 0; i < all || len(got) < len(want); i++ { // a request that is there twice is too much
		if i < all {
			r.Record(finished(uint64(i), fmt.Sprint("/", i), 500, 0))
			r.Record(finished(uint64(i), "/not-this", 200, 0))
			want += fmt.Sprintf("/%d ", i)
		}
		p, next := r.Tail(Query{StatusFrom: 500}, at, MaxPage)
		at = next
		for _, q := range slices.Backward(p.Requests) {
			got += q.Path + " "
		}
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p, _ := r.Tail(Query{StatusFrom: 500}, 1, 10); len(p.Requests) != 10 || p.Next == (Cursor{}) {
		t.Errorf("a tail with more than 10 requests: %d, next %v", len(p.Requests), p.Next)
	}
	if p, next := r.Tail(Query{}, exchange.Now()+int64(time.Hour), 10); len(p.Requests) != 0 || next > exchange.Now() {
		t.Errorf("from a place in the future: %v, next %d", p.Requests, next)
	}
}

func TestMemoryIsBoundedAndErrorsStayLonger(t *testing.T) {
	r := New(Config{Size: MinSize})
	if r.Size() != 0 {
		t.Errorf("an empty ring holds %d bytes", r.Size())
	}
	r.Record(finished(1, "/failed", 502, 0))
	r.Record(finished(2, "/slow", 200, 2*time.Second))
	r.Record(finished(3, "/first", 200, 0))
	for i := range 20_000 {
		r.Record(finished(uint64(i+10), "/plain", 200, 0))
	}
	if r.Size() > MinSize {
		t.Errorf("%d bytes are held, at most %d may be", r.Size(), MinSize)
	}
	for path, kept := range map[string]bool{"/failed": true, "/slow": true, "/first": false} {
		if got := len(r.Find(Query{Path: path}, Cursor{}, 1).Requests) == 1; got != kept {
			t.Errorf("%s is kept: %v, want %v", path, got, kept)
		}
	}
	if n := len(r.Find(Query{}, Cursor{}, MaxPage).Requests); n != MaxPage {
		t.Errorf("%d requests are left", n)
	}
}

func TestLongestRecordFits(t *testing.T) {
	r := New(Config{Size: MinSize})
	long := strings.Repeat("x", 10_000)
	const recorded = 50 // which have room however many processors share the ring
	for range recorded {
		ex := finished(1, "/"+long, 200, 0)
		ex.Request.Method, ex.Request.Host, ex.Request.Query, ex.Server, ex.User, ex.Cause = long, long, "?"+long, long, long, long
		ex.Request.Header.Set(header.UserAgent, long)
		ex.Request.Header.Set(header.Referer, long)
		ex.Place = &exchange.Place{Port: long, Proxy: long, Route: long}
		r.Record(ex)
	}
	got := r.Find(Query{}, Cursor{}, MaxPage).Requests
	if len(got) != recorded || len(got[0].Path) != maxPath || len(got[0].Cause) != maxCause {
		t.Errorf("got %d requests", len(got))
	}
}

func TestFollowersHearWhatComes(t *testing.T) {
	r := New(Config{})
	r.Record(finished(1, "/before", 200, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var got []string
	began := make(chan struct{})
	go func() {
		<-began
		r.Record(finished(2, "/not-this", 200, 0))
		r.Record(finished(3, "/a", 500, 0))
		r.Record(finished(4, "/b", 503, 0))
	}()
	// The poller runs when the follower is known; it is known before Follow waits.
	go func() {
		for !r.followed() {
			runtime.Gosched()
		}
		close(began)
	}()
	err := r.Follow(ctx, Query{StatusFrom: 500}, func(l Live) bool {
		got = append(got, l.Request.Path)
		return len(got) < 2
	})
	if err != nil || strings.Join(got, " ") != "/a /b" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestASubscriptionHearsWhatComesBeforeItRuns holds that nothing is lost between the two.
func TestASubscriptionHearsWhatComesBeforeItRuns(t *testing.T) {
	r := New(Config{})
	s, err := r.Subscribe(Query{})
	if err != nil {
		t.Fatal(err)
	}
	r.Record(finished(1, "/early", 200, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := ""
	s.Run(ctx, func(l Live) bool {
		got = l.Request.Path
		return false
	})
	if got != "/early" {
		t.Errorf("got %q, want what came before Run", got)
	}
	if s, err = r.Subscribe(Query{}); err != nil {
		t.Fatal(err)
	}
	if s.Close(); r.followed() {
		t.Error("a subscription that was closed is followed")
	}
}

// TestFollowersOfARetiredRingEnd holds that nobody waits for what will not come.
func TestFollowersOfARetiredRingEnd(t *testing.T) {
	r := New(Config{})
	ended := make(chan error)
	go func() { ended <- r.Follow(context.Background(), Query{}, func(Live) bool { return true }) }()
	for !r.followed() {
		runtime.Gosched()
	}
	r.Retire()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r.Record(finished(1, "/late", 200, 0)) // of an exchange that began before
	if got := r.Find(Query{}, Cursor{}, 10); len(got.Requests) != 1 {
		t.Errorf("%d requests are held, want 1", len(got.Requests))
	}
}

func (r *Ring) followed() bool {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	return len(r.live.mu.all) > 0
}

func TestSlowFollowersAreToldWhatTheyMissed(t *testing.T) {
	r := New(Config{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		for !r.followed() {
			runtime.Gosched()
		}
		for i := range 3 * queueSize {
			r.Record(finished(uint64(i), "/", 200, 0))
		}
	}()
	shown, missed := uint64(0), uint64(0)
	r.Follow(ctx, Query{}, func(l Live) bool {
		if l.Missed > 0 {
			missed += l.Missed
		} else {
			shown++
			for r.notYetMissed() && ctx.Err() == nil {
				runtime.Gosched()
			}
		}
		return shown+missed < 3*queueSize
	})
	if shown < queueSize || missed == 0 || shown+missed != 3*queueSize {
		t.Errorf("shown %d and missed %d, want %d in all", shown, missed, 3*queueSize)
	}
}

// notYetMissed reports whether no follower has missed anything.
func (r *Ring) notYetMissed() bool {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	for f := range r.live.mu.all {
		if f.missed > 0 {
			return false
		}
		return f.m != nil && len(f.queue) == cap(f.queue)
	}
	return false
}

// Readers see whole records while others write over old ones.
func TestReadersAndWritersAtOnce(t *testing.T) {
	r := New(Config{Size: MinSize})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 5000 {
				r.Record(finished(uint64(w*5000+i), "/path", 200+i%2*300, 0))
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, q := range r.Find(Query{}, Cursor{}, 500).Requests {
				if q.Path != "/path" || q.Client != "198.51.100.9" || q.Sent != 1234 {
					t.Errorf("torn record %+v", q)
					return
				}
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
	if r.Size() > MinSize {
		t.Errorf("%d bytes are held", r.Size())
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what a sync.Pool holds")
	}
	r := New(Config{Size: MinSize})
	ex := finished(1, "/api/cart", 200, 0)
	for range 20_000 {
		r.Record(ex) // until all memory is there
	}
	if n := testing.AllocsPerRun(5000, func() { r.Record(ex) }); n > 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := New(Config{})
	ex := finished(1, "/api/cart", 200, 0)
	b.ReportAllocs()
	for b.Loop() {
		r.Record(ex)
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	r := New(Config{})
	b.RunParallel(func(pb *testing.PB) {
		ex := finished(1, "/api/cart", 200, 0)
		for pb.Next() {
			r.Record(ex)
		}
	})
}

func BenchmarkFindInFullRing(b *testing.B) {
	r := New(Config{})
	ex := finished(1, "/api/cart", 200, 0)
	for range 200_000 {
		r.Record(ex)
	}
	for b.Loop() {
		r.Find(Query{Text: "nothing like it"}, Cursor{}, 100)
	}
}

func TestRequestIDsOfTrustedPeersAreKept(t *testing.T) {
	r := New(Config{})
	own, adopted, longest := finished(1, "/own", 200, 0), finished(2, "/adopted", 200, 0), finished(3, "/longest", 200, 0)
	adopted.AdoptID("0193b2f0-6f5c-7c9e-9f2a-1d3c5b7a9e01")
	longest.AdoptID(strings.Repeat("x", exchange.MaxID))
	for _, ex := range []*exchange.Exchange{own, adopted, longest} {
		r.Record(ex)
	}
	for _, ex := range []*exchange.Exchange{own, adopted, longest} {
		page := r.Find(Query{ID: ex.ID()}, Cursor{}, 10)
		if len(page.Requests) != 1 || page.Requests[0].Path != ex.Request.Path || page.Requests[0].ID != ex.ID() {
			t.Errorf("%s: found %+v", ex.ID(), page.Requests)
		}
	}
	if page := r.Find(Query{ID: exchange.IDOf(adopted.Number())}, Cursor{}, 10); len(page.Requests) != 0 {
		t.Errorf("by the id that it has not: %+v", page.Requests)
	}
}
