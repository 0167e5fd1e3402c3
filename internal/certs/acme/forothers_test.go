package acme

import (
	"slices"
	"testing"

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
