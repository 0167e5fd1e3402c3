package upstream

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/server/balance"
	"headgate/internal/server/split"
)

// newTestSplit returns a split between two servers.
func newTestSplit(t *testing.T, share int, stable, candidate Target, key string, sticky bool) *Split {
	t.Helper()
	choice, fault := split.ParseKey(key)
	if fault != "" {
		t.Fatal(fault)
	}
	p := SplitPolicy{Proxy: "shop", Sticky: sticky, Key: choice, AffinityKey: NewAffinityKey(), Live: split.NewLive()}
	p.Live.SetShare(share)
	return NewSplit(newServersWith(t, Policy{}, stable), newServersWith(t, Policy{FailClosed: true}, candidate), p)
}

// sent sends a request through the filter and the source.
func (s *Split) sent(t *testing.T, fields ...string) *exchange.Exchange {
	t.Helper()
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", fields...))
	ex.Limits.ConnectTimeout = 5 * time.Second
	f := s.Filter()
	f.Request(ex)
	exchangetest.Run(t, ex, s)
	if f.Response != nil {
		f.Response(ex)
	}
	return ex
}

func TestASplitCookieKeepsTheGroupWhileTheShareGrows(t *testing.T) {
	s := newTestSplit(t, 0, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), "", true)
	var cookies []string
	for i := range 200 {
		ex := exchangetest.New(t)
		s.Filter().Request(ex)
		s.Filter().Response(ex)
		value, _, _ := strings.Cut(ex.Response.Header.Get(header.SetCookie), ";")
		if !strings.HasPrefix(value, SplitCookie+"=") {
			t.Fatalf("client %d gets the cookie %q", i, value)
		}
		cookies = append(cookies, value)
	}
	in := map[string]bool{}
	for _, share := range []int{5, 25, 50, 100} {
		s.live.SetShare(share)
		n := 0
		for _, c := range cookies {
			for range 3 {
				ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: a=1; "+c))
				s.Filter().Request(ex)
				s.Filter().Response(ex)
				a := s.Assigned(ex)
				switch {
				case a.By != SplitByCookie:
					t.Fatalf("the cookie is not recognized: %+v", a)
				case ex.Response.Header.Has(header.SetCookie):
					t.Fatal("a client with a valid cookie gets another one")
				case ex.Request.Header.Get(header.Cookie) != "a=1":
					t.Fatalf("servers get the cookies %q", ex.Request.Header.Get(header.Cookie))
				case in[c] && a.Group != split.Candidate:
					t.Fatalf("at %d%% a client of the candidate has left it", share)
				}
				in[c] = a.Group == split.Candidate
			}
			if in[c] {
				n++
			}
		}
		if off := n - 2*share; off < -30 || off > 30 {
			t.Errorf("at %d%% %d of 200 clients are in the candidate", share, n)
		}
	}
	s.live.SetShare(0)
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: "+cookies[0]))
	s.Filter().Request(ex)
	equal(t, "group of a client after the return", s.Assigned(ex).Group, split.Stable)
}

func TestASplitCookieCannotBeMade(t *testing.T) {
	s := newTestSplit(t, 100, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), "", true)
	other := NewAffinityKey()
	for _, value := range []string{"0", "candidate", other.value("shop", "split", "0"), s.points.plain[0][:20], strings.Repeat("A", pinLength)} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: "+SplitCookie+"="+value))
		s.Filter().Request(ex)
		equal(t, value, s.Assigned(ex).By, SplitByNewCookie)
	}
}

func TestAKeyDecidesAlikeEverywhere(t *testing.T) {
	a := newTestSplit(t, 30, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), "header:X-Tenant", true)
	b := newTestSplit(t, 30, target("127.0.0.1:3", 1), target("127.0.0.1:4", 1), "header:X-Tenant", true)
	n := 0
	for i := range 1000 {
		groups := [2]split.Group{}
		for j, s := range []*Split{a, b} {
			ex := exchangetest.New(t, exchangetest.Head("GET", "/", fmt.Sprint("X-Tenant: ", i)))
			s.Filter().Request(ex)
			groups[j] = s.Assigned(ex).Group
		}
		equal(t, fmt.Sprint("tenant ", i), groups[0], groups[1])
		n += int(groups[0])
	}
	if n < 250 || n > 350 {
		t.Errorf("%d of 1000 tenants are in the candidate at 30%%", n)
	}
}

func TestACandidateThatCannotBeReachedCostsNoRequest(t *testing.T) {
	stable := newOdd(t, respondText(fine))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	s := newTestSplit(t, 100, target(stable.address, 1), target(closed, 1), "client_ip", true)
	ex := s.sent(t)
	equal(t, "status", ex.Response.Status, 200)
	equal(t, "attempts", ex.Attempts, 2)
	requests, errors := s.live.Totals(split.Candidate)
	equal(t, "requests of the candidate", requests, 1)
	equal(t, "errors of the candidate", errors, 1)

	// One that accepts no requests gets none, and is not blamed.
	s.candidate.list[0].live.Set(balance.Unhealthy)
	ex = s.sent(t)
	equal(t, "status", ex.Response.Status, 200)
	equal(t, "attempts", ex.Attempts, 1)
	requests, _ = s.live.Totals(split.Candidate)
	equal(t, "requests of the candidate", requests, 1)
	requests, _ = s.live.Totals(split.Stable)
	equal(t, "requests of stable", requests, 2)
}

func TestARequestThatTheCandidateHasSeenIsNotRepeated(t *testing.T) {
	stable := newOdd(t, respondText(fine))
	candidate := newOdd(t, func(net.Conn, *http.Request) bool { return false })
	s := newTestSplit(t, 100, target(stable.address, 1), target(candidate.address, 1), "client_ip", true)
	ex := s.sent(t)
	equal(t, "reason", ex.Reason, exchange.UpstreamReset)
	if _, n := stable.seen(); n != 0 {
		t.Errorf("the stable server got %d requests", n)
	}
	_, errors := s.live.Totals(split.Candidate)
	equal(t, "errors of the candidate", errors, 1)
}

func TestErrorsOfEachGroupAreCounted(t *testing.T) {
	stable, candidate := newOdd(t, respondText(fine)), newOdd(t, respondText(busy))
	s := newTestSplit(t, 50, target(stable.address, 1), target(candidate.address, 1), "", false)
	for range 100 {
		s.sent(t)
	}
	for g, want := range map[split.Group]*odd{split.Stable: stable, split.Candidate: candidate} {
		requests, errors := s.live.Totals(g)
		_, n := want.seen()
		equal(t, g.String()+" requests", requests, uint64(n))
		if g == split.Stable {
			n = 0
		}
		equal(t, g.String()+" errors", errors, uint64(n))
		if requests < 20 {
			t.Errorf("%s got %d of 100 requests by chance at 50%%", g, requests)
		}
	}
}

func TestSplitDecisionsSayWhy(t *testing.T) {
	s := newTestSplit(t, 5, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), "", true)
	value := SplitCookie + "=" + strings.TrimPrefix(s.points.plain[4][:len(SplitCookie)+1+pinLength], SplitCookie+"=")
	for _, c := range []struct {
		share  int
		cookie string
		want   SplitDecision
	}{
		{5, value, SplitDecision{"candidate", 5, "the cookie headgate_split", true}},
		{4, value, SplitDecision{"stable", 4, "the cookie headgate_split", true}},
		{0, "", SplitDecision{"stable", 0, "its share of 0%", true}},
		{100, "", SplitDecision{"candidate", 100, "its share of 100%", true}},
	} {
		s.live.SetShare(c.share)
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: "+c.cookie))
		s.Filter().Request(ex)
		equal(t, "decision", s.Decided(ex), c.want)
	}
	s.live.SetShare(5)
	ex := exchangetest.New(t)
	s.Filter().Request(ex)
	equal(t, "certain without a cookie", s.Decided(ex).Certain, false)
}

// A plan that serves nothing, as that of a check, shows what the first share does.
func TestSplitDecisionsBeforeTheStart(t *testing.T) {
	s := newTestSplit(t, 0, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), "", true)
	s.live, s.start = split.NewLive(), 5
	for point, want := range map[int]string{4: "candidate", 5: "stable"} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Cookie: "+s.points.plain[point][:len(SplitCookie)+1+pinLength]))
		s.Filter().Request(ex)
		equal(t, fmt.Sprint("group of point ", point), s.Decided(ex).Group, want)
		equal(t, fmt.Sprint("where a request goes, of point ", point), s.Assigned(ex).Group, split.Stable)
	}
}
