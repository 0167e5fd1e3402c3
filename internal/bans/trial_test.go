package bans

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// past is a request of the past.
type past struct {
	from, path, user string
	status           int
	reason           exchange.Reason
}

// try tries the rules on requests, one a second.
func (p *place) try(before *Rules, requests ...past) Trial {
	p.t.Helper()
	trials := p.rules.Try(before)
	at := time.Date(2026, 11, 26, 13, 10, 0, 0, time.UTC)
	for i, rq := range requests {
		ex := &exchange.Exchange{ClientIP: netip.MustParseAddr(rq.from), User: rq.user, Reason: rq.reason}
		ex.Request.Method, ex.Request.Path, ex.Response.Status = "GET", rq.path, rq.status
		trials.Add(ex, at.Add(time.Duration(i)*time.Second))
	}
	return trials.Results()[0]
}

func times(n int, rq past) []past {
	all := make([]past, n)
	for i := range all {
		all[i] = rq
	}
	return all
}

func TestTrialShowsWhomARuleWouldHaveBanned(t *testing.T) {
	c := scanners()
	c.Exempt = []string{"198.51.100.0/24"}
	p := open(t, Options{}, c)
	requests := []past{{from: "203.0.113.9", path: "/", status: 200}}
	requests = append(requests, times(5, past{from: "203.0.113.9", path: "/.env", status: 404})...)  // banned by the third
	requests = append(requests, times(9, past{from: "198.51.100.7", path: "/.env", status: 404})...) // exempt
	requests = append(requests, times(9, past{from: "10.0.0.7", path: "/.env", status: 404})...)     // never banned
	requests = append(requests, times(2, past{from: "203.0.113.10", path: "/.env", status: 404})...) // too few
	requests = append(requests, times(30, past{from: "203.0.113.11", path: "/api", status: 401})...) // without credentials
	requests = append(requests, times(10, past{from: "203.0.113.12", path: "/api", status: 403})...) // banned by the last
	requests = append(requests, past{from: "203.0.113.12", path: "/ok", status: 200, user: "ada"})   // refused
	requests = append(requests, times(9, past{from: "203.0.113.13", path: "/.env", status: 403, reason: exchange.Banned})...)
	got := p.try(nil, requests...)
	if got.Rule != "scanners" || !got.Changed || got.Requests != len(requests) || got.Unknown != 30 || got.Refused != 3 || got.Addresses != 2 || got.SignedIn != 1 || len(got.Would) != 2 {
		t.Fatalf("%+v", got)
	}
	if w := got.Would[1]; w.Network != "203.0.113.9" || w.Why != "3 × /.env since 13:10" || w.Until.Sub(w.Since) != 10*time.Minute || w.SignedIn {
		t.Errorf("%+v", w)
	}
	if w := got.Would[0]; w.Network != "203.0.113.12" || !w.SignedIn {
		t.Errorf("%+v", w)
	}
	// It has counted for itself alone.
	if p.banned("203.0.113.9") || p.filter(request{from: "203.0.113.10", path: "/.env", status: 404}) != nil || p.banned("203.0.113.10") {
		t.Error("a trial has banned a client")
	}
	if bans := p.rules.States()[0].Bans; bans != 0 {
		t.Errorf("%d bans", bans)
	}
}

func TestTrialCountsCredentialsAndPieces(t *testing.T) {
	p := open(t, Options{}, scanners())
	trials := p.rules.Try(nil)
	at := time.Date(2026, 11, 26, 13, 0, 0, 0, time.UTC)
	ex := &exchange.Exchange{ClientIP: netip.MustParseAddr("203.0.113.9")}
	ex.Request.Method, ex.Request.Path, ex.Response.Status = "GET", "/api", 401
	ex.Request.Header.Add(header.Authorization, "Basic eDp5")
	for i := range 12 { // two minutes apart: never ten within ten minutes
		trials.Add(ex, at.Add(time.Duration(i)*2*time.Minute))
	}
	if got := trials.Results()[0]; got.Counted != 12 || got.Unknown != 0 || got.Addresses != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTrialKnowsWhichRulesChanged(t *testing.T) {
	p := open(t, Options{}, scanners())
	before := p.rules
	p.use(scanners())
	same := p.try(before)
	c := scanners()
	c.When[1].Count = 4
	p.keep = map[string]exchange.Kept{}
	p.use(c)
	if changed := p.try(before); same.Changed || !changed.Changed {
		t.Errorf("%+v and %+v", same, changed)
	}
	if text := fmt.Sprint(&same); text == "" {
		t.Error("no words")
	}
	if (*Rules)(nil).Try(before) != nil || (*Trials)(nil).Results() != nil {
		t.Error("a trial without rules")
	}
}
