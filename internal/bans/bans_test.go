package bans

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is an engine with one rule.
type place struct {
	t      *testing.T
	engine *Engine
	rules  *Rules
	keep   map[string]exchange.Kept
}

func scanners() *Config {
	return &Config{
		When: []Condition{
			{Reason: "no_route", Count: 20}, {Path: []string{"/.env", "/.git/*"}, Count: 3}, {Status: []int{401, 403}, Count: 10},
		},
		Within: unit.Duration(10 * time.Minute), Ban: Length{First: unit.Duration(10 * time.Minute), Factor: 4, Max: unit.Duration(7 * 24 * time.Hour)},
		Mode: Enforce, Answer: Deny,
	}
}

func open(t *testing.T, o Options, c *Config) *place {
	t.Helper()
	var log testhouse.Log
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := &place{t: t, engine: New(o), keep: map[string]exchange.Kept{}}
	p.engine.protected.machine.Store(ipset.Of(nil)) // the networks of tests may be the machine's
	t.Cleanup(p.engine.Close)
	p.use(c)
	return p
}

// use makes the rule that of the configuration in use.
func (p *place) use(c *Config, trusted ...string) {
	p.t.Helper()
	env := exchange.Env{Clock: p.engine.o.Clock, Keep: func(key string, open func() exchange.Kept) exchange.Kept {
		if p.keep[key] == nil {
			p.keep[key] = open()
		}
		return p.keep[key]
	}}
	settings := map[string]*Config{"scanners": c}
	var err error
	if p.rules, err = Compile(settings, p.engine, env); err != nil {
		p.t.Fatal(err)
	}
	var networks []netip.Prefix
	for _, text := range trusted {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	p.engine.Use(settings, networks)
}

// request is what a client asks, and what becomes of it.
type request struct {
	from, peer string // peer "" is from
	method     string
	path       string
	status     int
	reason     exchange.Reason
	fields     []string
	user       string
	source     Source
}

// filter passes a request through the filter, and reports whether it was refused.
func (p *place) filter(rq request) *exchange.Answer {
	p.t.Helper()
	if rq.peer == "" {
		rq.peer = rq.from
	}
	ex := &exchange.Exchange{}
	remote := netip.AddrPortFrom(netip.MustParseAddr(rq.peer), 1)
	ex.Reset(&exchange.Conn{Remote: remote}, nil)
	ex.ClientIP, ex.Times.Start, ex.User = netip.MustParseAddr(rq.from), exchange.Now(), rq.user
	ex.Request.Method, ex.Request.Path = rq.method, rq.path
	if rq.method == "" {
		ex.Request.Method = "GET"
	}
	for i := 0; i+1 < len(rq.fields); i += 2 {
		ex.Request.Header.AddField(rq.fields[i], rq.fields[i+1])
	}
	f := p.rules.Filter(rq.source)
	if answer := f.Request(ex); answer != nil {
		return answer
	}
	ex.Response.Status, ex.Reason = rq.status, rq.reason
	if rq.status == 0 {
		ex.Response.Status = 200
	}
	f.Response(ex)
	return nil
}

// banned reports whether a client is refused now.
func (p *place) banned(from string) bool {
	return p.filter(request{from: from, path: "/"}) != nil
}

func TestThreeRequestsForASecretBan(t *testing.T) {
	p := open(t, Options{}, scanners())
	for i := range 3 {
		if p.filter(request{from: "203.0.113.9", path: "/.env", status: 404}) != nil {
			t.Fatalf("refused at request %d", i+1)
		}
	}
	answer := p.filter(request{from: "203.0.113.9", path: "/"})
	if answer == nil || answer.Reason != exchange.Banned || !strings.Contains(answer.Cause, "by bans.scanners: 3 × /.env since") {
		t.Fatalf("answer %+v", answer)
	}
	if p.banned("203.0.113.10") {
		t.Error("a neighbour is banned")
	}
	if list := p.engine.List(); len(list) != 1 || list[0].Refused() != 1 || list[0].Until.Sub(list[0].Since) != 10*time.Minute {
		t.Errorf("list %+v", list)
	}
}

// TestWhatIsNeverCounted holds every case of the design: each request is made often
// enough to ban, and bans nobody.
func TestWhatIsNeverCounted(t *testing.T) {
	const enough = 40
	for name, rq := range map[string]request{
		"ACME":                           {path: "/.well-known/acme-challenge/x", status: 404, reason: exchange.NoRoute},
		"preflight":                      {method: "OPTIONS", path: "/.env", status: 403, fields: []string{"Access-Control-Request-Method", "PUT"}},
		"401 without credentials":        {path: "/repo.git/info/refs", status: 401, reason: exchange.AuthRequired},
		"WebDAV without credentials":     {method: "PROPFIND", path: "/dav", status: 401},
		"hidden image on a foreign page": {path: "/.env", status: 404, fields: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
		"signed in":                      {path: "/.env", status: 404, user: "anna"},
		"usual":                          {path: "/index.html"},
		"server error":                   {path: "/", status: 502, reason: exchange.UpstreamRefused},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, Options{}, scanners())
			rq.from = "203.0.113.9"
			for range enough {
				p.filter(rq)
			}
			if p.banned(rq.from) {
				t.Errorf("banned: %v", p.engine.List()[0])
			}
		})
	}
	p := open(t, Options{}, scanners())
	for range 10 {
		p.filter(request{from: "203.0.113.9", path: "/", status: 401, fields: []string{"Authorization", "Basic eDp5"}})
	}
	if !p.banned("203.0.113.9") {
		t.Error("who guesses passwords is not banned")
	}
}

func TestWhoIsNeverBanned(t *testing.T) {
	cdn := func(n netip.Prefix) string {
		if n.Overlaps(netip.MustParsePrefix("198.51.100.0/24")) {
			return "cloudflare"
		}
		return ""
	}
	p := open(t, Options{CDN: cdn}, scanners())
	c := scanners()
	c.Exempt = []string{"203.0.113.40"}
	p.use(c, "203.0.113.50/32")
	p.engine.protected.machine.Store(ipset.Of([]netip.Prefix{netip.MustParsePrefix("203.0.113.60/32"), netip.MustParsePrefix("2001:db8:0:1::5/128")}))
	p.engine.SignedIn(netip.MustParseAddr("203.0.113.70"))
	p.engine.Lift(netip.MustParsePrefix("203.0.113.80/32"), "anna", "", true, false)
	for who, address := range map[string]string{
		"loopback": "127.0.0.1", "private": "10.1.2.3", "private IPv6": "fd00::1", "exempt": "203.0.113.40", "a trusted proxy": "203.0.113.50",
		"this machine": "203.0.113.60", "the /64 of this machine": "2001:db8:0:1::99", "an operator": "203.0.113.70", "a CDN": "198.51.100.7", "pardoned": "203.0.113.80",
	} {
		for range 5 {
			p.filter(request{from: address, path: "/.env", status: 404})
		}
		if p.banned(address) {
			t.Errorf("%s, %s, is banned", who, address)
		}
	}
	c.IncludePrivate = true
	p.use(c)
	for range 3 {
		p.filter(request{from: "10.1.2.3", path: "/.env", status: 404})
	}
	if !p.banned("10.1.2.3") {
		t.Error("with include_private a private address is not banned")
	}
	if _, err := p.engine.Add(Request{Network: netip.MustParsePrefix("198.51.100.0/24"), Until: time.Now().Add(time.Hour), Who: "anna", Why: ""}, false); err == nil {
		t.Error("an operator bans a CDN")
	}
}

// TestOperatorWhoMistypesComesBack holds the case of an operator on a dynamic address: a
// sign-in lifts the ban that was made there.
func TestOperatorWhoMistypesComesBack(t *testing.T) {
	p := open(t, Options{}, scanners())
	for range 10 {
		p.filter(request{from: "203.0.113.9", path: "/login", status: 401, fields: []string{"Authorization", "Basic eDp5"}})
	}
	if !p.banned("203.0.113.9") {
		t.Fatal("not banned")
	}
	p.engine.SignedIn(netip.MustParseAddr("203.0.113.9"))
	if p.banned("203.0.113.9") {
		t.Error("an operator signed in from there, and the address is banned still")
	}
}

// TestSpoofedAddressBansNobody holds that an address which a proxy in front told acts only
// where the same settings of client_ip hold, and never at accept.
func TestSpoofedAddressBansNobody(t *testing.T) {
	p := open(t, Options{}, scanners())
	c := scanners()
	c.Answer = Reject
	p.use(c, "192.0.2.1/32")
	told := SourceOf(struct{ Trusted []string }{[]string{"192.0.2.1"}})
	for range 3 { // told by the proxy in front
		p.filter(request{from: "203.0.113.9", peer: "192.0.2.1", source: told, path: "/.env", status: 404})
	}
	victim := netip.MustParseAddr("203.0.113.9")
	if p.filter(request{from: "203.0.113.9", peer: "192.0.2.1", source: told, path: "/"}) == nil {
		t.Error("not banned where it was told")
	}
	if p.banned("203.0.113.9") {
		t.Error("banned as a peer, which it never was")
	}
	if other := SourceOf(struct{ Trusted []string }{[]string{"192.0.2.2"}}); p.filter(request{from: "203.0.113.9", peer: "192.0.2.2", source: other, path: "/"}) != nil {
		t.Error("banned where other proxies are trusted")
	}
	if p.engine.Rejects(victim) {
		t.Error("its connections are closed")
	}
	for range 3 { // as a peer
		p.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	if !p.engine.Rejects(victim) || p.filter(request{from: "203.0.113.9", peer: "192.0.2.2", source: 77, path: "/"}) == nil {
		t.Error("a peer is not banned everywhere")
	}
}

func TestRejectSparesThoseWhoSignedIn(t *testing.T) {
	p := open(t, Options{}, scanners())
	c := scanners()
	c.Answer = Reject
	p.use(c)
	a := netip.MustParseAddr("203.0.113.9")
	p.filter(request{from: "203.0.113.9", path: "/", user: "anna"}) // one of 500 people behind a NAT
	for range 3 {
		p.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	if !p.banned("203.0.113.9") || p.engine.Rejects(a) {
		t.Error("who signed in lately is to get the page with the reason, and no closed connection")
	}
}

func TestManyNetworksOfA48BanItWhole(t *testing.T) {
	p := open(t, Options{}, scanners())
	for i := range widenFrom {
		from := fmt.Sprintf("2001:db8:1:%x::1", i)
		for range 3 {
			p.filter(request{from: from, path: "/.env", status: 404})
		}
		if wide := p.banned("2001:db8:1:ffff::1"); wide != (i == widenFrom-1) {
			t.Fatalf("after %d networks the /48 is banned: %v", i+1, wide)
		}
	}
	if p.banned("2001:db8:2::1") {
		t.Error("the next /48 is banned")
	}
	p.engine.Lift(netip.MustParsePrefix("2001:db8:1::/48"), "anna", "", false, false)
	if p.banned("2001:db8:1:ffff::1") || p.banned("2001:db8:1:1::1") || len(p.engine.List()) > 0 {
		t.Errorf("bans left: %v", p.engine.List())
	}
}

func TestObserveBansNobodyAndSaysWhom(t *testing.T) {
	c := scanners()
	c.Mode = Observe
	p := open(t, Options{}, c)
	p.filter(request{from: "203.0.113.10", path: "/", user: "anna"})
	for range 4 {
		for _, from := range []string{"203.0.113.9", "203.0.113.10"} {
			if p.filter(request{from: from, path: "/.env", status: 404}) != nil {
				t.Fatal("a rule that observes refuses")
			}
		}
	}
	s := p.rules.States()[0]
	if s.Addresses != 2 || s.SignedIn != 1 || s.Requests != 9 || !strings.Contains(s.Summary, "9 requests: 2 addresses would be banned; 1 of them signed in") {
		t.Errorf("state %+v", s)
	}
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort("203.0.113.9:1")}, nil)
	ex.Rehearsal, ex.ClientIP = true, netip.MustParseAddr("203.0.113.9")
	if p.rules.Filter(Peer).Request(ex) != nil || len(ex.Notes) != 1 || !strings.Contains(ex.Notes[0], "would reject this client until") {
		t.Errorf("explain says %q", ex.Notes)
	}
	// A rule that was changed counts anew; one that was not goes on.
	p.use(c)
	if s := p.rules.States()[0]; s.Addresses != 2 {
		t.Errorf("after a change elsewhere: %+v", s)
	}
	again := scanners()
	again.Mode, again.Within = Observe, unit.Duration(time.Minute)
	p.use(again)
	if s := p.rules.States()[0]; s.Addresses != 0 {
		t.Errorf("after the rule was changed: %+v", s)
	}
}

func TestBansGrowAndEnd(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	var events []Event
	p := open(t, Options{Clock: clock, Told: func(e Event) { mu.Lock(); events = append(events, e); mu.Unlock() }}, scanners())
	for _, want := range []time.Duration{10 * time.Minute, 40 * time.Minute, 160 * time.Minute} {
		for range 3 {
			p.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
		}
		b := p.engine.List()[0]
		if got := b.Until.Sub(b.Since); got != want {
			t.Fatalf("ban of %v, want %v", got, want)
		}
		pass(want)
		p.engine.tidy()
		if len(p.engine.List()) > 0 || p.engine.table.count.Load() != 0 {
			t.Fatal("the ban does not end")
		}
	}
	mu.Lock()
	if len(events) != 6 || events[1].Ended == false || events[0].Ended {
		t.Errorf("%d events", len(events))
	}
	mu.Unlock()
	// A rule that no longer bans has none in force.
	for range 3 {
		p.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	c := scanners()
	c.Mode = Observe
	p.use(c)
	if p.banned("203.0.113.9") {
		t.Error("a rule went to observe, and its ban acts still")
	}
}

func TestLengthIsBounded(t *testing.T) {
	l := Length{First: unit.Duration(time.Minute), Factor: 100, Max: unit.Duration(24 * time.Hour)}
	for times, want := range map[int]time.Duration{1: time.Minute, 2: 100 * time.Minute, 3: 24 * time.Hour, 1 << 30: 24 * time.Hour} {
		if got := l.of(times); got != want {
			t.Errorf("ban %d lasts %v, want %v", times, got, want)
		}
	}
}

func TestBansSurviveARestartAndHoldOnAllNodes(t *testing.T) {
	s := memory.New()
	defer s.Close()
	one, two := open(t, Options{Store: s}, scanners()), open(t, Options{Store: s}, scanners())
	for range 3 {
		one.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	if _, err := one.engine.Add(Request{Network: netip.MustParsePrefix("198.51.100.0/24"), Until: time.Now().Add(time.Hour), Who: "anna", Why: "a scan"}, false); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "the other node has the bans", func() bool { return two.banned("203.0.113.9") && two.banned("198.51.100.200") })
	two.engine.Lift(netip.MustParsePrefix("203.0.113.9/32"), "anna", "", true, false)
	testhouse.Eventually(t, "the first node has the ban lifted", func() bool { return !one.banned("203.0.113.9") && len(one.engine.Pardons()) == 1 })
	one.engine.Close()
	two.engine.Close()
	three := open(t, Options{Store: s}, scanners())
	if !three.banned("198.51.100.200") || three.banned("203.0.113.9") || len(three.engine.Pardons()) != 1 {
		t.Errorf("after a restart: %v, never %v", three.engine.List(), three.engine.Pardons())
	}
}

// TestFloodOfAddressesIsBounded holds that five million addresses take no more memory
// than the table has, and that who was counted before the flood is banned after it.
func TestFloodOfAddressesIsBounded(t *testing.T) {
	c := newCounters()
	id := &condition{number: 1}
	client := keyOf(netip.MustParseAddr("203.0.113.9"), Peer)
	c.add(id, client, 100)
	c.add(id, client, 100)
	flood := 5_000_000
	if testing.Short() {
		flood = 500_000
	}
	for i := range flood {
		c.add(id, hostKey{high: uint64(i) << 20, low: 1}, 100)
	}
	total := 0
	for i := range c.shards {
		total += len(c.shards[i].mu.entries)
	}
	if total > maxCounters {
		t.Errorf("%d counters, at most %d are to be", total, maxCounters)
	}
	if got := c.add(id, client, 100); got.total != 3 {
		t.Errorf("the client was forgotten: counted %d", got.total)
	}
}

func TestCountersSlide(t *testing.T) {
	c, id, k := newCounters(), &condition{number: 1}, hostKey{low: 7}
	for _, step := range []struct {
		slot  int64
		total int
	}{{10, 1}, {10, 2}, {17, 3}, {18, 2}, {25, 2}, {26, 2}, {40, 1}} {
		if got := c.add(id, k, step.slot).total; got != step.total {
			t.Errorf("in piece %d: %d, want %d", step.slot, got, step.total)
		}
	}
}

func TestTableOfBansIsBounded(t *testing.T) {
	p := open(t, Options{}, scanners())
	now := time.Now()
	p.engine.mu.Lock()
	for i := range maxBans + 10 {
		a := netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)})
		p.engine.putLocked(&Ban{Network: netip.PrefixFrom(a, 32), Rule: "scanners", Since: now, Until: now.Add(time.Hour + time.Duration(i)*time.Second)})
	}
	n := len(p.engine.mu.all)
	p.engine.mu.Unlock()
	if n > maxBans || int64(n) != p.engine.table.count.Load() {
		t.Errorf("%d bans, %d on the table", n, p.engine.table.count.Load())
	}
	if !p.banned("100.1.134.160") { // the last but few
		t.Error("a late ban was given up")
	}
}

// unwritable is a store that takes nothing.
type unwritable struct{ store.Store }

func (unwritable) Commit(context.Context, store.Change) (store.Revision, error) {
	return 0, store.ErrUnavailable
}

func TestStoreThatIsAwayLosesNoBan(t *testing.T) {
	s := memory.New()
	defer s.Close()
	p := open(t, Options{Store: unwritable{s}}, scanners())
	for range 3 {
		p.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	p.engine.write(t.Context())
	p.engine.mu.Lock()
	waits := len(p.engine.mu.dirty)
	p.engine.mu.Unlock()
	if waits != 1 || !p.banned("203.0.113.9") {
		t.Errorf("%d wait to be written", waits)
	}
}

func BenchmarkResponseThatCountsNothing(b *testing.B) {
	e := New(Options{})
	defer e.Close()
	r, err := Compile(map[string]*Config{"scanners": scanners()}, e, exchange.Env{Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept { return open() }})
	if err != nil {
		b.Fatal(err)
	}
	for _, bans := range []int{0, 10_000} {
		for i := range bans {
			e.Add(Request{Network: netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 0, byte(i >> 8), byte(i)}), 32), Until: time.Now().Add(time.Hour), Who: "", Why: ""}, false)
		}
		f := r.Filter(Peer)
		ex := &exchange.Exchange{}
		ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort("203.0.113.9:1")}, nil)
		ex.ClientIP, ex.Request.Path, ex.Response.Status = netip.MustParseAddr("203.0.113.9"), "/index.html", 200
		b.Run(fmt.Sprint(bans), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ex.Times.Start = 1 << 40
				f.Request(ex)
				f.Response(ex)
			}
		})
	}
}
