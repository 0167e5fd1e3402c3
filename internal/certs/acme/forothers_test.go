package acme

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

// TestAMachineOrdersForOneThatCannot holds that certificates which another machine wants are
// ordered with the entries of this one, as long as they are wanted, and are not its own.
func TestAMachineOrdersForOneThatCannot(t *testing.T) {
	a := start(t, acmetest.Settings{})
	leads, follows := a.manager(newStore()), New(Options{Store: newStore(), Ports: &fakePorts{}})
	defer follows.Close()
	e := a.entry()
	follows.Set(map[string]*Config{"main": e}, []Want{{"main", e, []string{"own.example.com"}}, {"main", e, []string{"shop.example.com"}}})
	leads.setWanted(e, []string{"own.example.com"})
	leads.state("own.example.com", Valid)
	missing := follows.Missing(leads.Wanted())
	if len(missing) != 1 || missing[0].Entry != "main" || !slices.Equal(missing[0].Names, []string{"shop.example.com"}) {
		t.Fatalf("the follower cannot order %v", missing)
	}
	orders := append(missing, store.NodeOrder{Entry: "other", Names: []string{"a.example.com"}}, store.NodeOrder{Entry: "main", Names: []string{"not_a_name.example.com"}},
		store.NodeOrder{Entry: "main", Names: []string{"b.example.com", "c.example.com"}}, store.NodeOrder{Entry: "main"})
	leads.SetOthers(orders)
	leads.state("shop.example.com", Valid)
	leads.certificate("shop.example.com")
	if got := leads.Wanted(); !slices.Equal(got, []string{"own.example.com"}) {
		t.Errorf("the leader itself wants %q", got)
	}
	if got := follows.Missing(leads.Wanted()); len(got) != 1 {
		t.Errorf("once it is ordered, the follower asks for %v", got)
	}
	leads.setWanted(e, []string{"own.example.com"}) // as each change does
	if n := len(leads.Records()); n != 2 || a.Orders() != 2 {
		t.Errorf("%d certificates are managed, with %d orders; want 2", n, a.Orders())
	}
	leads.SetOthers(nil)
	leads.Manager.mu.Lock()
	defer leads.Manager.mu.Unlock()
	if leads.Manager.mu.jobs["shop.example.com"].wanted || !leads.Manager.mu.jobs["own.example.com"].wanted {
		t.Error("the certificate of a machine that was removed is renewed")
	}
}

// TestAnOrderOfAnotherMachineIsWaitedFor holds that handshakes wait for a certificate that another
// machine orders until its order fails or the caller ends that, and that nothing is left of it.
func TestAnOrderOfAnotherMachineIsWaitedFor(t *testing.T) {
	const host = "shop.example.com"
	m := New(Options{Store: newStore(), Ports: &fakePorts{}})
	defer m.Close()
	waits := func() bool {
		t.Helper()
		p := m.Progress(host)
		if p.Ordering {
			select {
			case <-p.Changed:
				t.Fatal("it has changed before it ended")
			default:
			}
		}
		return p.Ordering
	}
	gone := func() {
		t.Helper()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.mu.jobs) != 0 {
			t.Errorf("%d jobs are left", len(m.mu.jobs))
		}
	}
	first := m.ExpectOnDemand(host)
	second := m.ExpectOnDemand(host) // another rule or a later handshake
	changed := m.Progress(host).Changed
	if first(); !waits() {
		t.Error("the end of an earlier wait ends a later one")
	}
	if n := len(m.Records()); n != 0 {
		t.Errorf("%d certificates are shown for which nothing is known", n)
	}
	second()
	if waits() {
		t.Error("its end was not noticed")
	}
	<-changed
	gone()

	m.ExpectOnDemand(host)
	changed = m.Progress(host).Changed
	failed := Record{Name: nameOf([]string{host}), Names: []string{host}, State: Pending, Demand: &Demanded{Proxy: "tenants"}}
	fail := func() {
		t.Helper()
		text, err := json.Marshal(failed)
		if err != nil {
			t.Fatal(err)
		}
		m.acceptFailure(failed.Name, text)
	}
	if fail(); !waits() {
		t.Error("an order in progress ended the wait")
	}
	failed.State, failed.NextTry = Failed, time.Now().Add(time.Minute)
	fail()
	<-changed
	if p := m.Progress(host); p.Ordering || p.Valid || !p.NotBefore.Equal(failed.NextTry) {
		t.Errorf("after the order has failed: %+v", p)
	}
	if n := len(m.Records()); n != 1 {
		t.Errorf("%d certificates are shown, want the one that failed", n)
	}
}
