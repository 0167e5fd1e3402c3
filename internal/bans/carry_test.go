package bans

import (
	"net/netip"
	"testing"
	"time"

	"headgate/internal/exchange"
)

// TestUnsavedBanGoesToAnotherProcess holds that a ban which is not in the store acts in
// the new process, and that its event is published once.
func TestUnsavedBanGoesToAnotherProcess(t *testing.T) {
	n := netip.MustParsePrefix("203.0.113.9/32")
	old := New(Options{})
	defer old.Close()
	if _, err := old.Add(Request{Network: n, Until: time.Now().Add(time.Hour), Who: "anna", Why: "scans"}, false); err != nil {
		t.Fatal(err)
	}
	unsaved := old.Unsaved()
	if len(unsaved) == 0 {
		t.Fatal("everything is saved without a store")
	}
	for _, published := range []bool{true, false} {
		var events []Event
		now := New(Options{Told: func(e Event) { events = append(events, e) }})
		now.Restore(unsaved, published)
		now.Restore(unsaved, published)
		all := now.bansIn(n)
		if len(all) != 1 || all[0].Who != "anna" || all[0].Why != "scans" || all[0].Until.Before(time.Now().Add(59*time.Minute)) {
			t.Errorf("got %+v", all)
		}
		if want := map[bool]int{true: 0, false: 1}[published]; len(events) != want {
			t.Errorf("published %v: %d events, want %d", published, len(events), want)
		}
		if len(now.Unsaved()) != len(unsaved) {
			t.Error("the new process does not save it")
		}
		now.Close()
	}
}

// bansIn returns the bans in force of a network.
func (e *Engine) bansIn(n netip.Prefix) (all []*Ban) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, b := range e.mu.all {
		if id.network == n && b.Until.After(e.o.Clock()) {
			all = append(all, b)
		}
	}
	return all
}

func TestUnknownUnsavedChangesAreIgnored(t *testing.T) {
	e := New(Options{})
	defer e.Close()
	e.Restore([]Unsaved{{Key: "other/x", Value: []byte("{}")}, {Key: prefixAt + "nonsense/0", Value: []byte("{}")}, {Key: prefixAt + "203.0.113.9_32/0", Value: []byte("[]")}}, false)
	if got := e.bansIn(netip.MustParsePrefix("203.0.113.9/32")); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// carry gives the parts of a place that outlive a process to another place.
func carry(t *testing.T, from, to *place) {
	t.Helper()
	n := 0
	for key, part := range from.keep {
		old, ok := part.(exchange.Carried)
		if !ok {
			continue
		}
		now, ok := to.keep[key].(exchange.Carried)
		if !ok {
			t.Fatalf("the new process has no %s", key)
		}
		now.Import(old.Export())
		n++
	}
	if n != 2 {
		t.Fatalf("%d parts outlive the process, want the counters and the state of the rule", n)
	}
	to.engine.RestoreSignedIn(from.engine.SignedInLately())
}

// TestCountersGoToAnotherProcess checks that a client that was counted twice before an
// upgrade is banned for the third request after it, and that none is banned earlier.
func TestCountersGoToAnotherProcess(t *testing.T) {
	old, now := open(t, Options{}, scanners()), open(t, Options{}, scanners())
	for range 2 {
		old.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	old.filter(request{from: "2001:db8::1", path: "/.env", status: 404})
	carry(t, old, now)
	if now.banned("203.0.113.9") {
		t.Fatal("banned for two requests")
	}
	now.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	now.filter(request{from: "2001:db8::1", path: "/.env", status: 404})
	if !now.banned("203.0.113.9") || now.banned("2001:db8::1") {
		t.Errorf("after the third request of one client: bans %v", now.engine.List())
	}
}

// TestObservationGoesToAnotherProcess checks what a rule that observes has seen, and that an
// address from which a person signed in is known.
func TestObservationGoesToAnotherProcess(t *testing.T) {
	c := scanners()
	c.Mode = Observe
	old, now := open(t, Options{}, c), open(t, Options{}, c)
	for range 3 {
		old.filter(request{from: "203.0.113.9", path: "/.env", status: 404})
	}
	old.filter(request{from: "203.0.113.10", path: "/", user: "anna"})
	carry(t, old, now)
	for range 3 {
		now.filter(request{from: "203.0.113.10", path: "/.env", status: 404})
	}
	was, is := old.rules.States()[0], now.rules.States()[0]
	if !is.Since.Equal(was.Since) || is.Requests != was.Requests+3 || is.Addresses != 2 || is.SignedIn != 1 {
		t.Errorf("before %+v\nafter %+v", was, is)
	}
}

func FuzzImport(f *testing.F) {
	c := openCounters()
	c.add(&condition{number: 1}, hostKey{low: 7}, 100)
	f.Add(c.Export(), []byte(`{"since":"2026-01-01T00:00:00Z","would":[{"low":7,"times":1}]}`))
	f.Fuzz(func(t *testing.T, data, observed []byte) {
		c := openCounters()
		c.Import(data)
		for _, slot := range []int64{0, 100, 1 << 40} {
			if got := c.add(&condition{number: 1}, hostKey{low: 7}, slot); got.total < 1 || got.oldest < 0 || got.oldest >= slots {
				t.Fatalf("counted %+v", got)
			}
		}
		if again := openCounters(); len(data) > 0 {
			again.Import(c.Export())
		}
		var s state
		s.Import(observed)
		s.would(func(hostKey) bool { return false })
		var k seen
		k.restore(data)
	})
}
