package control

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/certs/acme"
	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/certs/ech"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// publishing is an echRecords with a provider of the test.
type publishing struct {
	*echRecords
	mu      sync.Mutex
	results map[string]acme.Publication // by host; published if there is none
	tries   map[string][]time.Time
	failed  []ECHFailure
	hosts   []string
	key     string
	logged  bytes.Buffer
}

func newPublishing(hosts ...string) *publishing {
	d := &publishing{results: map[string]acme.Publication{}, tries: map[string][]time.Time{}, hosts: hosts, key: "k1"}
	settings := &acme.Config{DNS: &acme.DNS{Provider: "cloudflare"}}
	d.echRecords = &echRecords{log: slog.New(slog.NewTextHandler(&d.logged, nil)), wake: make(chan struct{}, 1)}
	d.echRecords.mu.failed = map[string]*ECHFailure{}
	d.wanted = func() (all []wantedRecord) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, h := range d.hosts {
			all = append(all, wantedRecord{"secure", "main", settings, acme.HTTPSRecord{Host: h, Name: h, ECH: []byte(d.key)}})
		}
		return all
	}
	d.publish = func(_ context.Context, _ *acme.Config, r *acme.HTTPSRecord) acme.Publication {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tries[r.Host] = append(d.tries[r.Host], time.Now())
		if result, ok := d.results[r.Host]; ok {
			return result
		}
		return acme.Publication{State: acme.Published}
	}
	d.report = func(f ECHFailure) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failed = append(d.failed, f)
	}
	return d
}

// triesOf returns how often the record of a host was tried.
func (d *publishing) triesOf(host string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tries[host])
}

// reports returns how many failures were reported.
func (d *publishing) reports() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.failed)
}

// change changes hosts or results, and has the records looked at.
func (d *publishing) change(edit func()) {
	d.mu.Lock()
	edit()
	d.mu.Unlock()
	d.notify()
	synctest.Wait()
}

func (d *publishing) state(host string) acme.PublishState {
	r := ECHRecord{Name: host}
	d.describe("secure", &r)
	return r.State
}

func TestRecordsAreTriedAgainLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make([]string, 10)
		d := newPublishing()
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%d.example.com", i)
			d.results[hosts[i]] = acme.Publication{State: acme.PublishFailed, Why: "no permission", Hint: "give it"}
		}
		d.results["slow.example.com"] = acme.Publication{State: acme.Waiting, Why: "not there"}
		d.results["alias.example.com"] = acme.Publication{State: acme.Skipped, Why: "CNAME"}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { d.run(ctx) })
		defer run.Wait()
		defer stop()
		synctest.Wait()
		if len(d.tries) != 0 {
			t.Fatalf("without a port, records are tried: %v", d.tries)
		}
		d.change(func() { d.hosts = append(hosts, "good.example.com", "slow.example.com", "alias.example.com") })
		if len(d.failed) != 1 || d.failed[0].Entry != "main" || len(d.failed[0].Names) != len(hosts) || d.failed[0].Cause != "no permission" || d.failed[0].Hint != "give it" || !d.failed[0].RetryAt.Equal(time.Now().Add(recordFirst)) {
			t.Errorf("got the reports %+v, want one of all that failed", d.failed)
		}
		if got := d.issue("secure"); got != "the HTTPS record of h0.example.com and 9 more is not written: no permission; give it" {
			t.Errorf("got the issue %q", got)
		}
		for host, want := range map[string]acme.PublishState{"good.example.com": acme.Published, "slow.example.com": acme.Waiting, "alias.example.com": acme.Skipped, "h3.example.com": acme.PublishFailed} {
			if got := d.state(host); got != want {
				t.Errorf("%s is %s, want %s", host, got, want)
			}
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(d.tries["good.example.com"]); n < 21 || n > 25 {
			t.Errorf("a record that is published is looked at %d times a day", n)
		}
		if n := len(d.tries["alias.example.com"]); n < 21 || n > 25 {
			t.Errorf("a record that is skipped is looked at %d times a day", n)
		}
		tries := d.tries["h0.example.com"]
		if n := len(tries); n < 25 || n > 32 || tries[1].Sub(tries[0]) != recordFirst || tries[n-1].Sub(tries[n-2]) != recordCheck {
			t.Errorf("a record that fails is tried %d times a day: %v", n, tries)
		}
		if d.state("slow.example.com") != acme.PublishFailed || len(d.failed) != 2 || !strings.Contains(d.failed[1].Cause, "not visible within 10m0s: not there") {
			t.Errorf("a record that is not visible is %s; reports %+v", d.state("slow.example.com"), d.failed)
		}
		// Another key is published at once, and what works again is noticed.
		d.change(func() { d.key = "k2"; clear(d.results) })
		for _, host := range d.hosts {
			if got := d.state(host); got != acme.Published {
				t.Errorf("%s is %s after another key", host, got)
			}
		}
		if d.issue("secure") != "" || len(d.failed) != 2 {
			t.Errorf("got the issue %q and %d reports", d.issue("secure"), len(d.failed))
		}
		d.change(func() { d.hosts = d.hosts[:1] })
		if n := len(d.echRecords.mu.all); n != 1 {
			t.Errorf("%d records are kept for one host", n)
		}
		// Records that stay in the DNS are named.
		if got := d.logged.String(); !strings.Contains(got, `no longer updated`) || !strings.Contains(got, `records="alias.example.com, good.example.com, h1.example.com`) || !strings.Contains(got, "count=12") {
			t.Errorf("got the log %s", got)
		}
	})
}

// With a provider that hangs, all records get their turn before one is tried again, the failure
// is reported while others are still tried, and what is written afterwards has its full time to
// become visible.
func TestASlowProviderStarvesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts []string
		for i := range 100 {
			hosts = append(hosts, fmt.Sprintf("h%02d.example.com", i))
		}
		d := newPublishing(hosts...)
		quick := d.publish
		var quickly atomic.Bool
		d.publish = func(ctx context.Context, e *acme.Config, r *acme.HTTPSRecord) acme.Publication {
			result := quick(ctx, e, r)
			if !quickly.Load() {
				<-ctx.Done()
				return acme.Publication{State: acme.PublishFailed, Why: "timeout"}
			}
			return result
		}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { d.run(ctx) })
		defer run.Wait()
		defer stop()
		time.Sleep(2*recordReport + time.Second)
		if d.reports() == 0 {
			t.Error("nothing is reported before all have failed")
		}
		time.Sleep(time.Duration(len(hosts)/recordParallel)*recordTime - 2*recordReport)
		synctest.Wait()
		for _, h := range hosts {
			if n := d.triesOf(h); n != 1 && n != 2 {
				t.Errorf("%s was tried %d times before all others", h, n)
			}
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := d.reports(); n < 2 || n > 10 {
			t.Errorf("got %d reports", n)
		}
		quickly.Store(true)
		d.change(func() { d.results["h00.example.com"] = acme.Publication{State: acme.Waiting, Why: "not there"} })
		time.Sleep(recordCheck + recordTime)
		if n, got := d.reports(), d.state("h01.example.com"); got != acme.Published {
			t.Errorf("h01.example.com is %s; %d reports", got, n)
		}
		r := ECHRecord{Name: "h00.example.com"}
		d.describe("secure", &r)
		if !strings.Contains(r.Note, "not visible within 10m0s") {
			t.Errorf("got %+v", r)
		}
	})
}

func TestTheTimeToBecomeVisibleStartsWithTheWriting(t *testing.T) {
	p := &publishedRecord{wantedRecord: wantedRecord{settings: &acme.Config{DNS: &acme.DNS{}}}, Publication: acme.Publication{State: acme.Waiting}}
	now := time.Now()
	p.note(acme.Publication{State: acme.PublishFailed, Why: "no permission"}, now)
	now = now.Add(3 * time.Hour)
	p.note(acme.Publication{State: acme.Waiting}, now)
	if p.State != acme.Waiting || !p.next.Equal(now.Add(recordLook)) {
		t.Errorf("after a failure and a write: got %+v", p)
	}
	p.note(acme.Publication{State: acme.Waiting}, now.Add(usualPropagation+1))
	if p.State != acme.PublishFailed {
		t.Errorf("later: got %+v", p)
	}
}

// written is a house whose HTTPS records are written to a zone.
func written(t *testing.T, z *acmetest.Zone) *hidden {
	t.Helper()
	for _, name := range []string{"example.com", "shop.example.com"} {
		z.Add("A", name, "127.0.0.1", false)
	}
	h := startHidden(t, fmt.Sprintf("acme:\n  main: {resolvers: [%q], dns: {provider: cloudflare, credentials: {api_token: %s, endpoint: %q}}}", z.Names, acmetest.ZoneToken, z.API))
	h.apply(strings.Replace(fileText(t, h.file), "public_name: Example.com", "public_name: Example.com, dns: main", 1))
	return h
}

// record waits until the record of a host has a state, and returns it.
func (h *hidden) record(host string, state acme.PublishState) (found ECHRecord) {
	h.t.Helper()
	testhouse.Eventually(h.t, fmt.Sprintf("the record of %s is %s", host, state), func() bool {
		for _, r := range h.c.ECH()[0].Records {
			if r.Host == host {
				found = r
			}
		}
		return found.State == state
	})
	return found
}

func TestTheRecordsOfHostsAreWrittenAndFollowTheKeys(t *testing.T) {
	t.Parallel()
	z := acmetest.StartZone(t)
	h := written(t, z)
	r := h.record("shop.example.com", acme.Published)
	in := func() string { return strings.Join(z.HTTPS(r.Name), "\n") }
	if want := fmt.Sprintf("%d %s", ech.RecordTTL, r.Value); in() != want {
		t.Errorf("the zone has %s, want %s", in(), want)
	}
	h.record("private.example.net", acme.Skipped)
	if all := h.c.ECH()[0]; all.DNS != "main" || slices.ContainsFunc(all.Issues, func(s string) bool { return strings.Contains(s, "HTTPS record") }) {
		t.Errorf("got %+v", all)
	}

	// The key gets old: the new one is published when all machines have it.
	former, key := in(), store.PrefixECH+"example.com"
	age := func(d time.Duration) {
		e, err := h.c.state.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := ech.Parse(e.Value, "example.com")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			k.Made = k.Made.Add(-d)
		}
		if _, err := h.c.state.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: key, Value: keys.JSON()}}}); err != nil {
			t.Fatal(err)
		}
		h.c.ech.notify()
	}
	age(ech.Rotation)
	testhouse.Eventually(t, "another key is announced", func() bool { return len(h.c.ECH()[0].Keys) == 2 })
	if in() != former {
		t.Errorf("the zone has %s before all machines have the key", in())
	}
	age(ech.Announced)
	testhouse.Eventually(t, "the new key is in the zone", func() bool { return in() != former })
	r = h.record("shop.example.com", acme.Published)
	if want := fmt.Sprintf("%d %s", ech.RecordTTL, r.Value); in() != want || z.Writes() != 2 {
		t.Errorf("after %d writes, the zone has %s, want %s", z.Writes(), in(), want)
	}

	// The provider refuses: that is an issue of the port, and the record stays to be copied.
	z.Fail(true)
	age(ech.Rotation)
	testhouse.Eventually(t, "a third key is announced", func() bool { return len(h.c.ECH()[0].Keys) == 3 })
	age(ech.Announced)
	r = h.record("shop.example.com", acme.PublishFailed)
	if !strings.Contains(r.Note, "403") || r.NextTry.IsZero() || r.Line == "" || strings.Contains(r.Note, acmetest.ZoneToken) {
		t.Errorf("got %+v", r)
	}
	if all := h.c.Status().ECH; len(all) != 1 || !slices.ContainsFunc(all[0].Issues, func(s string) bool { return strings.Contains(s, "the HTTPS record of "+r.Name+" is not written") }) {
		t.Errorf("the status has %+v", all)
	}
	testhouse.Eventually(t, "the failure is reported", func() bool {
		h.seen.mu.Lock()
		defer h.seen.mu.Unlock()
		return len(h.seen.failures) == 1 && slices.Equal(h.seen.failures[0].Names, []string{r.Name})
	})
}

// Without tls.ech.dns, no name server and no provider is queried.
func TestRecordsThatAreCopiedAreNotLookedAt(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	h.list()
	for _, r := range h.c.ECH()[0].Records {
		if r.State != "" || r.Note != "" {
			t.Errorf("got %+v", r)
		}
	}
	if n := len(h.c.echRecords.mu.all); n != 0 {
		t.Errorf("%d records are kept", n)
	}
}
