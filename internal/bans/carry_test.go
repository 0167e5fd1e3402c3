package bans

import (
	"net/netip"
	"testing"
	"time"
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
