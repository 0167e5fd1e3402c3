package acme

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

func (a *authority) demand(perHour, most int) *Demand {
	return &Demand{Proxy: "shops", Entry: "main", Settings: &OnDemand{Ask: "http://127.0.0.1:1/", MaxPerHour: perHour, MaxCertificates: most}}
}

// onDemand configures a manager with no certificates but those on demand.
func (u *under) onDemand(a *authority, d *Demand) {
	u.Manager.Load()
	u.Manager.SetDemands(func(string) *Demand { return d })
	u.Manager.Set(map[string]*Config{"main": a.entry()}, nil)
}

// order orders a host on demand, and waits until the order has ended.
func (u *under) order(host string, d *Demand) Progress {
	u.t.Helper()
	if err := u.OrderOnDemand(u.t.Context(), host, d); err != nil {
		u.t.Fatal(err)
	}
	return u.ended(host)
}

func (u *under) ended(host string) Progress {
	u.t.Helper()
	late := time.After(patience)
	for {
		p := u.Progress(host)
		if !p.Ordering {
			return p
		}
		select {
		case <-p.Changed:
		case <-late:
			u.t.Fatalf("%s is ordered still: %+v", host, u.Find(host))
		}
	}
}

func TestACertificateOnDemandIsKept(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s, d := newStore(), a.demand(10, 10)
	u := a.manager(s)
	u.onDemand(a, d)
	if p := u.Progress("shop.example.com"); p.Valid || p.Ordering {
		t.Errorf("before: %+v", p)
	}
	if p := u.order("shop.example.com", d); !p.Valid {
		t.Fatalf("got %+v, %+v", p, u.Find("shop.example.com"))
	}
	u.Close()
	again := a.manager(s)
	again.onDemand(a, d)
	if p := again.Progress("shop.example.com"); !p.Valid || p.Ordering {
		t.Errorf("after a restart: %+v", p)
	}
	if r := again.Find("shop.example.com"); r.Demand == nil || r.Demand.Proxy != "shops" || r.Demand.Allowed.IsZero() || len(again.Wanted()) != 1 {
		t.Errorf("after a restart: %+v, wanted %v", r.Demand, again.Wanted())
	}
	if a.Orders() != 1 {
		t.Errorf("%d orders, want 1", a.Orders())
	}
	again.Manager.SetDemands(func(string) *Demand { return nil })
	again.Manager.Set(map[string]*Config{"main": a.entry()}, nil)
	if len(again.Wanted()) != 0 || !again.Progress("shop.example.com").Valid {
		t.Error("without a rule it has to be served and not renewed")
	}
}

func TestTheLimitsOfOrdersOnDemandHoldOverARestart(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s, d := newStore(), a.demand(3, 10)
	u := a.manager(s)
	u.onDemand(a, d)
	for n := range 2 {
		u.order(fmt.Sprintf("h%d.example.com", n), d)
	}
	u.Close()
	u = a.manager(s)
	u.onDemand(a, d)
	u.order("h2.example.com", d)
	var l *Limited
	if err := u.OrderOnDemand(t.Context(), "h3.example.com", d); !errors.As(err, &l) || l.Bound != "max_per_hour" || time.Until(l.Until) > time.Hour || time.Until(l.Until) < 50*time.Minute {
		t.Errorf("got %v, %+v", err, l)
	}
	d = a.demand(100, 3)
	if err := u.OrderOnDemand(t.Context(), "h3.example.com", d); !errors.As(err, &l) || l.Bound != "max_certificates" {
		t.Errorf("got %v", err)
	}
	if u.Find("h3.example.com") != nil || a.Orders() != 3 {
		t.Errorf("ordered %+v, %d orders", u.Find("h3.example.com"), a.Orders())
	}
}

func TestAFailedOrderOnDemandIsNotRepeatedWithoutAClient(t *testing.T) {
	a := start(t, acmetest.Settings{})
	a.DNS.SetDefaultDNSIPv4("")
	u := a.manager(newStore())
	d := a.demand(10, 10)
	u.onDemand(a, d)
	p := u.order("bad.example.com", d)
	if p.Valid || p.NotBefore.IsZero() || len(u.Wanted()) != 0 {
		t.Errorf("got %+v, wanted %v", p, u.Wanted())
	}
	before := u.Find("bad.example.com").Failures
	time.Sleep(10 * quickPace.first)
	if r := u.Find("bad.example.com"); r.Failures != before || r.State != Blocked && r.State != Failed {
		t.Errorf("got %s after %d failures, want %d", r.State, r.Failures, before)
	}
}

func TestARenewalOnDemandAsksAgain(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s, d := newStore(), a.demand(10, 10)
	var answer atomic.Pointer[error]
	var asked atomic.Int32
	u := a.manager(s)
	u.allowed = func(_ context.Context, got *Demand, host string) error {
		if asked.Add(1); got != d || host != "shop.example.com" {
			t.Errorf("asked for %s by %+v", host, got)
		}
		return *answer.Load()
	}
	set := func(err error) { answer.Store(&err) }
	set(nil)
	u.onDemand(a, d)
	u.order("shop.example.com", d)
	if asked.Load() != 0 {
		t.Error("the first order asks itself")
	}
	renew := func() {
		t.Helper()
		if err := u.Order("shop.example.com"); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	u.until("shop.example.com", "renewed", func(r *Record) bool { return len(r.Timeline) == 2 && r.State == Valid })
	set(errors.New("no response"))
	renew()
	r := u.until("shop.example.com", "blocked", func(r *Record) bool { return r.State == Blocked })
	if r.Trouble.Code != "ask_failed" || len(u.Wanted()) != 1 {
		t.Errorf("got %+v", r.Trouble)
	}
	set(ErrNotAllowed)
	renew()
	u.until("shop.example.com", "refused", func(r *Record) bool { return r.Refused() && r.State == Idle })
	for range 100 {
		if len(u.Wanted()) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(u.Wanted()) != 0 || !u.Progress("shop.example.com").Valid || a.Orders() != 2 {
		t.Errorf("wanted %v, %+v, %d orders", u.Wanted(), u.Progress("shop.example.com"), a.Orders())
	}
	u.Close()
	u = a.manager(s)
	u.onDemand(a, d)
	if len(u.Wanted()) != 0 || !u.Progress("shop.example.com").Valid {
		t.Errorf("after a restart: wanted %v, %+v", u.Wanted(), u.Progress("shop.example.com"))
	}
}

func TestTwoMachinesPlaceOneOrderOnDemand(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s, d := newStore(), a.demand(1, 10)
	publish(t, s, store.Node{Name: "one"}, store.Node{Name: "two"}, store.Node{Name: "three"})
	a.node = "one"
	one := a.manager(s)
	a.node = "two"
	two := a.manager(s)
	a.node = "three"
	third := a.manager(s) // whose ports the authority asks
	for _, u := range []*under{one, two, third} {
		u.onDemand(a, d)
	}
	for _, u := range []*under{one, two} {
		if err := u.OrderOnDemand(t.Context(), "shop.example.com", d); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []*under{one, two} {
		if p := u.ended("shop.example.com"); !p.Valid {
			t.Errorf("got %+v, %+v", p, u.Find("shop.example.com"))
		}
	}
	third.until("shop.example.com", "valid", func(r *Record) bool { return r.State == Valid })
	if a.Orders() != 1 || len(third.Wanted()) != 1 {
		t.Errorf("%d orders, want 1; the third wants %v", a.Orders(), third.Wanted())
	}
}

func TestAHostThatIsListedIsOnDemandNoMore(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	d := a.demand(10, 10)
	u.allowed = func(context.Context, *Demand, string) error { return ErrNotAllowed }
	u.onDemand(a, d)
	u.order("shop.example.com", d)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	if err := u.Order("shop.example.com"); err != nil {
		t.Fatal(err)
	}
	u.until("shop.example.com", "renewed without a question", func(r *Record) bool { return len(r.Timeline) == 2 && r.State == Valid && r.Demand == nil })
}

func TestTheEndOfACertificateOnDemand(t *testing.T) {
	u := &under{Manager: New(Options{Store: newStore()}), t: t}
	defer u.stop()
	now := u.now()
	add := func(name string, wanted bool, since, until time.Duration) *job {
		j := u.jobLocked(name)
		j.record.Names, j.record.Demand, j.record.Since = []string{name}, &Demanded{Proxy: "shops"}, now.Add(since)
		if until != 0 {
			j.record.NotAfter = now.Add(until)
		}
		j.wanted = wanted
		j.shown.Store(j.record.public())
		return j
	}
	const day = 24 * time.Hour
	ended := add("ended.example.com", true, -90*day, -time.Hour)
	good := add("good.example.com", true, -30*day, 60*day)
	add("gone.example.com", false, -90*day, -8*day)
	add("never.example.com", false, -2*day, 0)
	add("tried.example.com", false, -time.Hour, 0)
	u.sweepLocked(now)
	u.stopped.Wait()
	if ended.wanted || !good.wanted {
		t.Errorf("the ended one is wanted: %v, the good one: %v", ended.wanted, good.wanted)
	}
	if n := len(u.Manager.mu.jobs); n != 3 || u.Manager.mu.jobs["gone.example.com"] != nil || u.Manager.mu.jobs["never.example.com"] != nil {
		t.Errorf("%d are left", n)
	}
}
