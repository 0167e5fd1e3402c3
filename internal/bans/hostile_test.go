package bans

import (
	"fmt"
	"net/netip"
	"testing"

	"headgate/internal/exchange"
)

// TestManyPeopleBehindOneAddress checks a NAT: what 500 people do who sign in, mistype, and
// ask for pages that are gone bans none. When one of them scans, all of them get the page
// with the reason, and no connection is closed before TLS, as people have signed in from there.
func TestManyPeopleBehindOneAddress(t *testing.T) {
	p := open(t, Options{}, scanners())
	c := scanners()
	c.Answer = Reject
	p.use(c)
	const nat = "203.0.113.9"
	for i := range 500 {
		person := fmt.Sprint("person", i)
		for _, rq := range []request{
			{path: "/", status: 401, reason: exchange.AuthRequired}, // before the browser asks for a password
			{path: "/", user: person},
			{path: fmt.Sprint("/gone/", i), status: 404, user: person},
			{path: "/forbidden", status: 403, user: person},
			{path: "/other", method: "OPTIONS", status: 403, fields: []string{"Access-Control-Request-Method", "PUT"}},
		} {
			rq.from = nat
			if answer := p.filter(rq); answer != nil {
				t.Fatalf("person %d is refused: %s", i, answer.Cause)
			}
		}
	}
	if p.banned(nat) {
		t.Fatalf("500 people are banned: %v", p.engine.List())
	}
	for range 3 {
		p.filter(request{from: nat, path: "/.env", status: 404})
	}
	answer := p.filter(request{from: nat, path: "/", user: "person1"})
	if answer == nil || answer.Reason != exchange.Banned {
		t.Fatalf("after a scan: %+v", answer)
	}
	if p.engine.Rejects(netip.MustParseAddr(nat)) {
		t.Error("connections of 500 people are closed without a reason")
	}
}

// TestRotationInA48 checks a client that has a /48 and uses each address once: its addresses
// in one /64 count together, and after eight networks the /48 is one ban, however many follow.
func TestRotationInA48(t *testing.T) {
	p := open(t, Options{}, scanners())
	banned := 0
	for i := range 5000 {
		from := fmt.Sprintf("2001:db8:1:%x::%x", i/3, i+1)
		if p.filter(request{from: from, path: "/.env", status: 404}) != nil {
			banned++
		}
	}
	// Eight networks need three requests each, and all others are refused.
	if served := 5000 - banned; served != 3*widenFrom {
		t.Errorf("%d requests were served, want %d", served, 3*widenFrom)
	}
	if n := p.engine.table.count.Load(); n > widenFrom+1 {
		t.Errorf("%d bans for one /48", n)
	}
	if p.banned("2001:db8:2::1") {
		t.Error("the next /48 is banned")
	}
}

func BenchmarkRequestThatCounts(b *testing.B) {
	c := scanners()
	c.When[1].Count = 60_000
	e := New(Options{})
	defer e.Close()
	r, err := Compile(map[string]*Config{"scanners": c}, e, exchange.Env{Clock: e.o.Clock, Keep: func(_ string, open func() exchange.Kept) exchange.Kept { return open() }})
	if err != nil {
		b.Fatal(err)
	}
	f := r.Filter(Peer)
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort("203.0.113.9:1")}, nil)
	ex.Request.Path, ex.Response.Status = "/.env", 404
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		i++ // of many clients, so that none is banned
		ex.ClientIP = netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)})
		ex.Times.Start = 1 << 40
		f.Request(ex)
		f.Response(ex)
	}
}

// TestProxyThatTheDefaultsDoNotTrustIsNotCounted checks requests without a route behind a proxy
// that another client_ip trusts: all of them seem to come from that proxy, so none is counted,
// and an issue reports it. Those of another address are counted.
func TestProxyThatTheDefaultsDoNotTrustIsNotCounted(t *testing.T) {
	p := open(t, Options{}, scanners())
	p.use(scanners(), "192.0.2.1/32")
	own := exchange.Filter{Request: func(ex *exchange.Exchange) *exchange.Answer { // client_ip that trusts no proxy
		ex.ClientIP = ex.Conn.Remote.Addr()
		return nil
	}}
	outside := p.rules.Outside(Peer, own)
	ask := func(peer string) *exchange.Answer {
		ex := &exchange.Exchange{}
		ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort(peer + ":1")}, nil)
		ex.Request.Method, ex.Request.Path = "GET", "/nowhere"
		return outside(ex, exchange.Fail(exchange.NoRoute, ""))
	}
	for range 40 {
		if got := ask("192.0.2.1"); got.Reason != exchange.NoRoute {
			t.Fatalf("the proxy gets %v", got.Reason)
		}
	}
	if issues := p.engine.Issues(); len(issues) != 1 || issues[0].Code != "unknown_client" {
		t.Errorf("issues %+v", issues)
	}
	for range 20 {
		ask("203.0.113.9")
	}
	if got := ask("203.0.113.9"); got.Reason != exchange.Banned {
		t.Errorf("after 20 requests without a route a client gets %v", got.Reason)
	}
}
