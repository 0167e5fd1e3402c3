package acme

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

// patient is manager with pauses after failures that are longer than any test.
func (a *authority) patient(s store.Store) *under {
	return a.managerAt(s, pace{first: time.Hour, most: time.Hour, look: quickPace.look, request: requestTimeout, poll: quickPace.poll})
}

func TestFailuresDoNotStarveWhatLivesShortly(t *testing.T) {
	t.Parallel()
	m := &Manager{pace: usualPace}
	now := time.Now()
	for _, test := range []struct {
		name       string
		life, left time.Duration
		failures   int
		most       time.Duration
	}{
		{"30 seconds, first failure", 30 * time.Second, 15 * time.Second, 1, 2 * time.Second},
		{"30 seconds, tenth failure", 30 * time.Second, 10 * time.Second, 10, 4 * time.Second},
		{"30 seconds, ended", 30 * time.Second, -time.Minute, 20, 4 * time.Second},
		{"6 days, tenth failure", 144 * time.Hour, 72 * time.Hour, 10, 67 * time.Minute},
		{"90 days, first failure", 2160 * time.Hour, 720 * time.Hour, 1, 67 * time.Second},
		{"90 days, last hour", 2160 * time.Hour, time.Hour, 10, 7 * time.Minute},
		{"none yet", 0, 0, 10, 67 * time.Minute},
	} {
		r := &Record{Name: "a", Failures: test.failures}
		if test.life > 0 {
			r.NotAfter = now.Add(test.left)
			r.NotBefore = r.NotAfter.Add(-test.life)
		}
		if got := m.pause(r, now); got <= 0 || got > test.most {
			t.Errorf("%s: paused for %v, want at most %v", test.name, got, test.most)
		}
	}
}

func TestAClockThatIsAheadOrdersNothingAgainAtOnce(t *testing.T) {
	t.Parallel()
	m := &Manager{pace: usualPace}
	now := time.Now()
	r := &Record{Name: "a", Has: []string{"a"}, NotBefore: now.Add(-100 * 24 * time.Hour), NotAfter: now.Add(-10 * 24 * time.Hour)}
	r.Timeline = []*Attempt{{Directory: "letsencrypt", Ended: now, Issued: true}}
	if due := m.dueAt(&Config{Renew: ByARI}, r, r.Has); due.Before(now.Add(30 * time.Minute)) {
		t.Errorf("it is ordered again in %v", due.Sub(now))
	}
	r.Timeline[0].Ended = now.Add(365 * 24 * time.Hour) // then the clock was set back
	if failed, issued := r.count("letsencrypt", now); failed+issued != 0 {
		t.Errorf("%d failed and %d issued a year from now are counted", failed, issued)
	}
}

func TestARevokedCertificateIsReplacedAtOnce(t *testing.T) {
	a := start(t, acmetest.Settings{Life: 20 * time.Second})
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	first := u.certificate("shop.example.com").Certificate.Leaf
	past := time.Now().Add(-time.Hour).UTC()
	window, err := json.Marshal(map[string]any{"suggestedWindow": map[string]time.Time{"start": past.Add(-time.Hour), "end": past}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.DB.SetARIResponse(first.SerialNumber, string(window)); err != nil {
		t.Fatal(err)
	}
	u.until("shop.example.com", "replaced", func(r *Record) bool { return r.NotAfter.After(first.NotAfter) })
	if left := time.Until(first.NotAfter); left < 2*time.Second {
		t.Errorf("it was replaced %v before its end only", left)
	}
}

func TestAStagingDirectoryIsAskedFirstAfterAFailedCheck(t *testing.T) {
	real, staging := start(t, acmetest.Settings{}), start(t, acmetest.Settings{})
	directories["test"] = directory{url: real.Directory, staging: staging.Directory}
	t.Cleanup(func() { delete(directories, "test") })
	var answers Answers
	u := real.manager(newStore())
	real.answers.Store(&answers) // somebody else answers
	staging.answers.Store(&answers)
	e := real.entry()
	e.CAFile += ".both"
	concat(t, e.CAFile, real.CAFile, staging.CAFile)
	e.Directory, e.Challenge = "test", HTTP01
	// Both authorities ask the ports of the first.
	staging.ports.http = real.ports.http
	u.setWanted(e, []string{"shop.example.com"})
	u.until("shop.example.com", "tried out", func(r *Record) bool { return len(r.Timeline) >= 3 && r.last().Staging })
	if n := real.Orders(); n != 1 {
		t.Errorf("%d orders were burnt, want 1", n)
	}
	real.answers.Store(u.Answers())
	staging.answers.Store(u.Answers())
	r := u.state("shop.example.com", Valid)
	if n := real.Orders(); n != 2 {
		t.Errorf("got %d orders in earnest, want 2", n)
	}
	if len(r.Timeline) < 2 || !r.Timeline[len(r.Timeline)-2].Staging || r.last().Staging {
		t.Errorf("got the timeline %+v", r.Timeline)
	}
}

func TestAStagingDirectoryThatIsAwayHoldsNothingUp(t *testing.T) {
	real := start(t, acmetest.Settings{})
	directories["test"] = directory{url: real.Directory, staging: "https://127.0.0.1:1/none"}
	t.Cleanup(func() { delete(directories, "test") })
	u := real.manager(newStore())
	real.answers.Store(&Answers{})
	e := real.entry()
	e.Directory = "test"
	u.setWanted(e, []string{"shop.example.com"})
	u.until("shop.example.com", "failed", func(r *Record) bool { return r.State == Failed })
	real.answers.Store(u.Answers())
	u.state("shop.example.com", Valid)
}

func TestAStartAgainBurnsNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u := a.patient(s)
	a.answers.Store(&Answers{})
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.until("shop.example.com", "failed", func(r *Record) bool { return r.State == Failed })
	u.Close()
	orders := a.Orders()
	for range 3 {
		v := a.patient(s)
		v.setWanted(a.entry(), []string{"shop.example.com"})
		v.until("shop.example.com", "loaded", func(r *Record) bool { return r.State == Failed && !r.NextTry.IsZero() })
		runtime.Gosched()
		v.Close()
	}
	if n := a.Orders(); n != orders {
		t.Errorf("%d more orders after three starts", n-orders)
	}
	v := a.patient(s)
	e := a.entry()
	e.Challenge = TLSALPN01 // somebody has corrected the entry meanwhile
	v.setWanted(e, []string{"shop.example.com"})
	v.state("shop.example.com", Valid)
}

func TestAnOrderThatTheAuthorityCannotFinishIsGivenUp(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var broken atomic.Value
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/my-order/") {
			broken.CompareAndSwap(nil, r.URL.Path)
			if broken.Load() == r.URL.Path {
				w.Header().Set("Content-Type", "text/html")
				io.WriteString(w, "<h1>no idea</h1>") // garbage, with status 200
				return true
			}
		}
		return false
	}
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	if n := a.Orders(); n != 2 {
		t.Errorf("got %d orders, want a second one after the first was given up", n)
	}
}

// What an authority calls its profiles and hosts is kept up to a bound, and without what
// drives a terminal.
func TestNamesOfAnAuthorityAreBounded(t *testing.T) {
	a := start(t, acmetest.Settings{})
	long := "\x1b[2J" + strings.Repeat("x", 1<<20)
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dir" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"newNonce": a.Directory, "newAccount": a.Directory, "newOrder": a.Directory, "meta": map[string]any{"profiles": map[string]string{long: ""}}})
		return true
	}
	u := a.patient(newStore())
	e := a.entry()
	e.Profile = "short"
	u.setWanted(e, []string{"shop.example.com"})
	r := u.until("shop.example.com", "refused", func(r *Record) bool { return r.Trouble != nil })
	if r.Trouble.Code != "bad_profile" || len(r.Trouble.Hint) > 2*maxDetail || strings.Contains(r.Trouble.Hint, "\x1b") {
		t.Errorf("got %s with a hint of %d bytes, %.100q", r.Trouble.Code, len(r.Trouble.Hint), r.Trouble.Hint)
	}
	p := problemOf(protocol.Problem{Resource: protocol.Authorization{Identifier: protocol.Identifier{Type: "dns", Value: long}}})
	if len(p.Name) > 2*maxDetail || strings.Contains(p.Name, "\x1b") {
		t.Errorf("the problem is about a name of %d bytes, %.100q", len(p.Name), p.Name)
	}
}

func TestTwoProcessesDoNotOrderOneCertificateTwice(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u, v := a.manager(s), a.manager(s)
	var both Answers
	a.Meddle = func(http.ResponseWriter, *http.Request) bool {
		both.http.Store(u.Answers().http.Load())
		if both.http.Load() == nil {
			both.http.Store(v.Answers().http.Load())
		}
		return false
	}
	a.answers.Store(&both)
	e := a.entry()
	e.Challenge = HTTP01
	u.setWanted(e, []string{"shop.example.com"})
	v.setWanted(e, []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	v.state("shop.example.com", Valid)
	if n := a.Orders(); n != 1 {
		t.Errorf("got %d orders, want 1", n)
	}
	one, two := u.certificate("shop.example.com"), v.certificate("shop.example.com")
	if string(one.PEM) != string(two.PEM) {
		t.Error("they use different certificates")
	}
}

func TestARateLimitIsHeardOnceAndHoldsForAll(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var refused, limited atomic.Int32
	limited.Store(1)
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "order-plz") && limited.Load() == 1 {
			refused.Add(1)
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many new orders"}`)
			return true
		}
		return false
	}
	u := a.manager(newStore())
	e := a.entry()
	u.setWanted(e, []string{"first.example.com"})
	r := u.until("first.example.com", "limited", func(r *Record) bool { return r.Trouble != nil && r.Trouble.Code == "rate_limited" })
	if wait := time.Until(r.NextTry); wait < 50*time.Minute || r.Trouble.Problem == nil || r.Trouble.Problem.Detail != "too many new orders" {
		t.Errorf("tried again in %v: %+v", wait, r.Trouble)
	}
	groups := [][]string{{"first.example.com"}}
	for i := range 20 {
		groups = append(groups, []string{fmt.Sprintf("h%d.example.com", i)})
	}
	u.setWanted(e, groups...)
	for _, g := range groups[1:] {
		u.until(g[0], "limited", func(r *Record) bool { return r.Trouble != nil && r.Trouble.Code == "rate_limited" })
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("the authority had to refuse %d orders, want 1", n)
	}
}

func TestManyNamesAtOnceWaitTheirTurn(t *testing.T) {
	a := start(t, acmetest.Settings{})
	directories["test"] = directory{url: a.Directory, limits: limits{orders: 25}}
	t.Cleanup(func() { delete(directories, "test") })
	u := a.manager(newStore())
	e := a.entry()
	e.Directory = "test"
	var groups [][]string
	for i := range 40 {
		groups = append(groups, []string{fmt.Sprintf("h%d.example.com", i)})
	}
	u.setWanted(e, groups...)
	valid, waiting := 0, 0
	for _, g := range groups {
		r := u.until(g[0], "valid or waiting", func(r *Record) bool {
			return r.State == Valid || r.Trouble != nil && r.Trouble.Code == "budget_orders"
		})
		if r.State == Valid {
			valid++
		} else {
			waiting++
		}
	}
	if valid != 25 || waiting != 15 || a.Orders() != 25 {
		t.Errorf("%d valid and %d waiting after %d orders, want 25, 15 and 25", valid, waiting, a.Orders())
	}
}

func TestAnAuthorityThatHangsHoldsUpItsOwnOnlyAndNotTheEnd(t *testing.T) {
	slow, good := start(t, acmetest.Settings{}), start(t, acmetest.Settings{})
	stuck := make(chan struct{})
	var hanging atomic.Int32
	slow.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		hanging.Add(1)
		<-stuck
		return false
	}
	t.Cleanup(func() { close(stuck) })
	u := good.manager(newStore())
	e, f := slow.entry(), good.entry()
	var wants []Want
	for i := range 3 * maxPerEntry {
		wants = append(wants, Want{Entry: "slow", Settings: e, Names: []string{fmt.Sprintf("a%d.example.com", i)}})
	}
	wants = append(wants, Want{Entry: "good", Settings: f, Names: []string{"shop.example.com"}})
	u.Set(map[string]*Config{"slow": e, "good": f}, wants[:len(wants)-1])
	for end := time.Now().Add(patience); hanging.Load() < maxPerEntry && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	u.Set(map[string]*Config{"slow": e, "good": f}, wants)
	u.state("shop.example.com", Valid)
	if n := hanging.Load(); n > maxPerEntry {
		t.Errorf("%d requests hang at once, want at most %d", n, maxPerEntry)
	}
	done := make(chan struct{})
	go func() {
		u.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience / 4): // less than one request may take
		t.Error("the end waits for an authority that hangs")
	}
}

// panicPorts are ports that break the order.
type panicPorts struct {
	*fakePorts
	broken atomic.Bool
}

func (p *panicPorts) Addresses() []netip.Addr {
	if p.broken.Load() {
		panic("an invariant does not hold")
	}
	return nil
}

func TestAnOrderThatBreaksEndsNothingElse(t *testing.T) {
	a := start(t, acmetest.Settings{})
	p := &panicPorts{fakePorts: &a.ports}
	p.broken.Store(true)
	a.instead = p
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.until("shop.example.com", "broken", func(r *Record) bool { return r.Trouble != nil && r.Trouble.Code == "broken" })
	p.broken.Store(false)
	u.state("shop.example.com", Valid)
}

func TestWhatNobodyWantsIsForgottenLongAfterItsEnd(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	long := time.Now().Add(-30 * 24 * time.Hour)
	for name, end := range map[string]time.Time{"gone.example.com": long, "fresh.example.com": time.Now().Add(time.Hour)} {
		data, err := json.Marshal(&Record{Name: name, Names: []string{name}, Has: []string{name}, State: Valid, Since: long, NotAfter: end})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixOrder + name, Value: data}, {Key: store.PrefixCertificate + name, Value: []byte("pem")}}}); err != nil {
			t.Fatal(err)
		}
	}
	u := a.manager(s)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	u.until("fresh.example.com", "kept", func(*Record) bool { return true })
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !s.has(store.PrefixOrder + "gone.example.com") {
			break
		}
	}
	if s.has(store.PrefixCertificate+"gone.example.com") || !s.has(store.PrefixCertificate+"fresh.example.com") {
		t.Error("the wrong certificate was removed")
	}
}

func TestARestWritesNothingThatIsKnown(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u := a.manager(s)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	u.until("shop.example.com", "at rest", func(r *Record) bool { return !r.NextTry.IsZero() })
	u.Close()
	v := a.manager(s)
	v.setWanted(a.entry(), []string{"shop.example.com"}) // asks when to renew
	v.until("shop.example.com", "asked", func(r *Record) bool { return r.Renewal != nil })
	v.Close()
	var writes atomic.Int32
	s.after = func(store.Change) { writes.Add(1) }
	w := a.manager(s)
	w.setWanted(a.entry(), []string{"shop.example.com"})
	w.state("shop.example.com", Valid)
	w.Close()
	if n := writes.Load(); n != 0 {
		t.Errorf("a start wrote %d times although nothing was new", n)
	}
}
