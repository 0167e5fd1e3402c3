package acme

import (
	"flag"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// names is how many names are wanted at once.
var names = flag.Int("names", 60, "order certificates for so many names at once; 1000 take a minute or two")

// TestManyNamesAtOnceAreAllHad wants many names at once, of an authority that refuses
// nonces, and holds how many orders are under way at any time.
func TestManyNamesAtOnceAreAllHad(t *testing.T) {
	a := start(t, acmetest.Settings{BadNonces: 10})
	var asked, most atomic.Int32
	a.Meddle = func(http.ResponseWriter, *http.Request) bool {
		n := asked.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		return false
	}
	a.Done = func() { asked.Add(-1) }
	u := a.manager(newStore())
	var groups [][]string
	for i := range *names {
		groups = append(groups, []string{fmt.Sprintf("h%d.example.com", i)})
	}
	before, began := heap(), time.Now()
	u.setWanted(a.entry(), groups...)
	peak := uint64(0)
	for valid := 0; valid < *names; {
		if time.Since(began) > time.Duration(*names)*time.Second+patience {
			t.Fatalf("%d of %d names were had", valid, *names)
		}
		time.Sleep(50 * time.Millisecond)
		valid = 0
		open := 0
		for _, r := range u.Records() {
			switch r.State {
			case Valid:
				valid++
			case Pending, Ready, Processing:
				open++
			}
		}
		if open > maxPerEntry {
			t.Fatalf("%d orders are under way at once, want at most %d", open, maxPerEntry)
		}
		if m := u.Answers().http.Load(); m != nil && len(*m) > maxPerEntry {
			t.Fatalf("%d challenges are answered at once, want at most %d", len(*m), maxPerEntry)
		}
		if *names > 500 {
			peak = max(peak, heap())
		}
	}
	t.Logf("%d names after %v, %d requests at once at most", *names, time.Since(began).Round(time.Millisecond), most.Load())
	if peak > 0 {
		t.Logf("the heap grew by %.1f MB at most, with the authority's own", float64(peak-min(before, peak))/1e6)
	}
	if most.Load() > maxPerEntry {
		t.Errorf("%d requests at once, want at most %d", most.Load(), maxPerEntry)
	}
	if n := a.Orders(); n < *names || n > *names+*names/4 {
		t.Errorf("%d orders for %d names", n, *names)
	}
}

// TestAWildcardNeedsOneOrder wants 100 hosts and the wildcard that covers them.
func TestAWildcardNeedsOneOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	all := []string{"*.example.com", "example.com"}
	for i := range 100 {
		all = append(all, fmt.Sprintf("h%d.example.com", i))
	}
	u.setWanted(a.withDNS(), Group(all)...)
	r := u.state("_wildcard.example.com", Valid)
	if len(r.Has) != 2 || r.Has[0] != "*.example.com" || r.Has[1] != "example.com" {
		t.Errorf("the certificate is for %q", r.Has)
	}
	if n := a.Orders(); n != 1 {
		t.Errorf("%d orders were placed for 100 hosts with one wildcard, want 1", n)
	}
	for i := range 100 {
		if err := u.certificate("_wildcard.example.com").Certificate.Leaf.VerifyHostname(fmt.Sprintf("h%d.example.com", i)); err != nil {
			t.Fatal(err)
		}
	}
}
