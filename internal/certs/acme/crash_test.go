package acme

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// TestWhatIsRestoredIsNotOrderedAgain puts a certificate and the record of its order into the
// store of a manager that runs, as a restore does before it sets the configuration.
func TestWhatIsRestoredIsNotOrderedAgain(t *testing.T) {
	a := start(t, acmetest.Settings{})
	before := newStore()
	u := a.manager(before)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	name := nameOf([]string{"shop.example.com"})

	after := newStore()
	u = a.manager(after)
	u.setWanted(a.entry(), []string{"other.example.com"}) // it has started
	u.state("other.example.com", Valid)
	orders := a.Orders()
	var restored []store.Entry
	for _, key := range []string{store.PrefixOrder + name, store.PrefixCertificate + name} {
		e, err := before.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		restored = append(restored, store.Entry{Key: key, Value: e.Value})
	}
	if _, err := after.Commit(t.Context(), store.Change{Put: restored}); err != nil {
		t.Fatal(err)
	}
	u.setWanted(a.entry(), []string{"other.example.com"}, []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	if n := a.Orders() - orders; n != 0 || u.certificate("shop.example.com") == nil {
		t.Errorf("%d orders for a certificate that is there", n)
	}
}

// TestACrashAtAnyStepCostsNoSecondOrder ends the manager after each commit in turn,
// as a crash would, and starts another over the same store.
func TestACrashAtAnyStepCostsNoSecondOrder(t *testing.T) {
	for n := 1; ; n++ {
		crashed := false
		t.Run(fmt.Sprint("commit ", n), func(t *testing.T) {
			a := start(t, acmetest.Settings{})
			s := newStore()
			seen, done := 0, make(chan struct{})
			dead := false
			s.before = func(store.Change) error {
				if dead {
					return errors.New("the process is dead")
				}
				return nil
			}
			s.after = func(store.Change) {
				if seen++; seen == n {
					dead, crashed = true, true
					close(done)
				}
			}
			u := a.manager(s)
			u.setWanted(a.entry(), []string{"shop.example.com"})
			select {
			case <-done:
			case <-valid(u, "shop.example.com"):
			case <-time.After(patience):
				t.Errorf("neither %d commits nor a certificate in %v", n, patience)
			}
			u.Close()
			placed := a.Orders()
			s.mu.Lock()
			dead, s.before, s.after = false, nil, nil
			s.mu.Unlock()
			v := a.manager(s)
			v.setWanted(a.entry(), []string{"shop.example.com"})
			r := v.state("shop.example.com", Valid)
			if more := a.Orders() - placed; placed > 0 && more > 0 && placedIsKnown(r) {
				t.Errorf("%d more orders after the crash: %+v", more, r.Timeline)
			}
		})
		if !crashed {
			if n < 6 {
				t.Errorf("only %d commits in an order", n)
			}
			return
		}
	}
}

// placedIsKnown reports whether the order before the crash was known to us: between
// the request and its answer nobody can know.
func placedIsKnown(r *Record) bool { return len(r.Timeline) < 2 }

// valid returns a channel that is closed when a certificate is valid.
func valid(u *under, name string) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; u.ctx.Err() == nil; testhouse.Pause() {
			for _, r := range u.Records() {
				if r.Name == name && r.State == Valid && !r.NotAfter.IsZero() {
					return
				}
			}
		}
	}()
	return done
}

func TestTwoProcessesWithOneStorePlaceOneOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u, v := a.manager(s), a.manager(s)
	a.answers.Store(u.Answers())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.until("shop.example.com", "under way", func(r *Record) bool { return r.State != Idle })
	v.setWanted(a.entry(), []string{"other.example.com"})
	u.state("shop.example.com", Valid)
}

// TestMachinesAnswerForEachOther holds that an authority may come to any of the machines, and
// that all of them serve the certificate.
func TestMachinesAnswerForEachOther(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u, v := a.manager(s), a.manager(s)
	v.setWanted(a.entry(), []string{"other.example.com"})
	v.state("other.example.com", Valid)
	a.answers.Store(v.Answers()) // the authority only ever comes to v
	e := a.entry()
	e.Challenge = HTTP01
	u.setWanted(e, []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	v.until("shop.example.com", "known to the other machine", func(r *Record) bool { return r.State == Valid })
	v.certificate("shop.example.com")
}

func TestAStoreThatIsAwayPlacesNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	away := true
	s.before = func(store.Change) error {
		if away {
			return store.ErrUnavailable
		}
		return nil
	}
	u := a.manager(s)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	r := u.state("shop.example.com", Blocked)
	if r.Trouble.Code != "store" || a.Orders() != 0 {
		t.Errorf("got %+v and %d orders", r.Trouble, a.Orders())
	}
	s.mu.Lock()
	away = false
	s.mu.Unlock()
	u.Wake()
	u.state("shop.example.com", Valid)
}

func TestNamesAreShared(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names []string
		want  [][]string
	}{
		{nil, nil},
		{[]string{"b.example.com", "a.example.com"}, [][]string{{"a.example.com"}, {"b.example.com"}}},
		{[]string{"*.example.com", "a.example.com", "b.example.com", "example.com"}, [][]string{{"*.example.com", "example.com"}}},
		{[]string{"*.example.com", "a.b.example.com"}, [][]string{{"*.example.com"}, {"a.b.example.com"}}},
		{[]string{"A.Example.com.", "a.example.com"}, [][]string{{"a.example.com"}}},
		{[]string{"bücher.example"}, [][]string{{"xn--bcher-kva.example"}}},
	} {
		if got := Group(test.names); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("Group(%q) = %q, want %q", test.names, got, test.want)
		}
	}
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("h%d.example.com", i))
	}
	if got := Group(append(hosts, "*.example.com")); len(got) != 1 {
		t.Errorf("100 hosts and their wildcard need %d certificates, want 1", len(got))
	}
}

func TestNamesThatNobodyGetsCertificatesFor(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"shop.example.com": true, "*.example.com": true, "bücher.example": true, "192.0.2.1": true, "2001:db8::1": true,
		"localhost": false, "a_b.example.com": false, "*.com": false, "co.uk": false, "a.*.example.com": false,
		"10.0.0.1": false, "fe80::1%eth0": false, "": false, "a b.example": false,
	} {
		if what, remedy := CheckName(name); (what == "") != good || (what != "") != (remedy != "") {
			t.Errorf("CheckName(%q) = %q, %q, want good %v", name, what, remedy, good)
		}
	}
}

// forbid lets only another authority issue for a domain.
func (a *authority) forbid(domain string) {
	a.DNS.AddDNSCAARecord(domain, []challtestsrv.CAAPolicy{{Tag: "issue", Value: "other.example"}})
}

func concat(t *testing.T, name string, from ...string) {
	t.Helper()
	var all []byte
	for _, f := range from {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	if err := os.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestANodeRemovesNoCertificateOfOthers holds that what one node does not want, it leaves
// to those who do: containers run on one node and not on another, and both have one store.
func TestANodeRemovesNoCertificateOfOthers(t *testing.T) {
	const name = "shop.example.com"
	long := time.Now().Add(-2 * keepGone)
	old := usualRecord(name)
	old.Since, old.NotAfter, old.Timeline = long, long, nil
	renewed := usualRecord(name)
	for _, test := range []struct {
		name    string
		kept    *Record
		node    string // what another node has published
		removed bool
	}{
		{"another node has renewed it since", renewed, "", false},
		{"another node wants it", old, `{"name":"b","wants":["shop.example.com"]}`, false},
		{"no node wants it and it has ended", old, `{"name":"b","wants":["other.example.com"]}`, true},
		{"what a node wants is not known", old, `{`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore()
			keep := func(r *Record) {
				data, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				put := []store.Entry{{Key: store.PrefixOrder + name, Value: data}, {Key: store.PrefixCertificate + name, Value: []byte("chain and key")}}
				if test.node != "" {
					put = append(put, store.Entry{Key: store.PrefixNode + "b", Value: []byte(test.node)})
				}
				if _, err := s.Commit(t.Context(), store.Change{Put: put}); err != nil {
					t.Fatal(err)
				}
			}
			keep(old)
			forgotten := 0
			m := New(Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Store: s, Ports: &fakePorts{}, Forget: func(string) { forgotten++ }})
			if !m.Load() {
				t.Fatal("not loaded")
			}
			keep(test.kept) // by another node
			m.mu.Lock()
			m.sweepLocked(time.Now())
			m.mu.Unlock()
			m.stopped.Wait()
			if gone := !s.has(store.PrefixCertificate + name); gone != test.removed || forgotten != map[bool]int{true: 1}[test.removed] {
				t.Errorf("the key is gone: %v, %d were forgotten; want gone: %v", gone, forgotten, test.removed)
			}
			m.Close()
		})
	}
}

// TestTwoNodesRemoveNothingAtOnce holds that a certificate is removed under its lease: one
// that another node orders just now is left alone.
func TestTwoNodesRemoveNothingAtOnce(t *testing.T) {
	s := newStore()
	old := usualRecord("shop.example.com")
	old.Since, old.NotAfter = time.Now().Add(-2*keepGone), time.Now().Add(-2*keepGone)
	data, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixOrder + old.Name, Value: data}, {Key: store.PrefixCertificate + old.Name}}}); err != nil {
		t.Fatal(err)
	}
	lease, err := s.Acquire(t.Context(), "acme/"+old.Name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	m := New(Options{Log: slog.New(slog.DiscardHandler), Store: s, Ports: &fakePorts{}})
	defer m.Close()
	m.remove([]string{old.Name})
	if !s.has(store.PrefixCertificate + old.Name) {
		t.Error("a certificate was removed while another node orders it")
	}
}
