package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// BenchmarkLoad reads the records of 10 000 certificates, and reports what one takes of
// memory.
func BenchmarkLoad(b *testing.B) {
	const n = 10_000
	kept := memory.New()
	for i := range n {
		data, err := json.Marshal(usualRecord(fmt.Sprintf("h%d.example.com", i)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := kept.Commit(b.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixOrder + fmt.Sprintf("h%d.example.com", i), Value: data}}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		before := heap()
		m := New(Options{Log: slog.New(slog.DiscardHandler), Store: kept, Ports: &fakePorts{}})
		if !m.Load() {
			b.Fatal("not loaded")
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/n, "B/record")
		m.Close()
		runtime.KeepAlive(m)
		b.StartTimer()
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// usualRecord is that of a certificate that was renewed twice.
func usualRecord(name string) *Record {
	now := time.Now().UTC()
	r := &Record{
		Name: name, Names: []string{name}, Has: []string{name}, Entry: "main", State: Valid, Since: now, NextTry: now.Add(6 * time.Hour),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(2160 * time.Hour), Directory: "letsencrypt",
		Renewal: &Renewal{Start: now.Add(1400 * time.Hour), End: now.Add(1448 * time.Hour), At: now.Add(1424 * time.Hour), AskAgain: now.Add(6 * time.Hour)},
	}
	for range 3 {
		a := r.startAttempt(r.Directory, false, now)
		for _, text := range []string{
			"order for " + name + " at letsencrypt", "the authority has accepted the order and requires 1 proof",
			name + ": answer to http-01 in place", name + ": the authority has seen that it is ours", "every name is ours",
			"certificate asked for", "issued, good until 2027-02-20T11:25:35Z",
		} {
			r.step(now, Pending, "%s", text)
		}
		a.Ended, a.Issued = now, true
	}
	r.State = Valid
	return r
}

func TestAStartAsksNobodyAboutWhatIsValid(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	u := a.manager(s)
	groups := [][]string{{"a.example.com"}, {"b.example.com"}}
	u.setWanted(a.entry(), groups...)
	for _, g := range groups {
		u.until(g[0], "asked when to renew", func(r *Record) bool { return r.State == Valid && !r.NextTry.IsZero() })
	}
	u.Close()
	v := a.manager(s) // asks when to renew, as it has not yet
	v.setWanted(a.entry(), groups...)
	for _, g := range groups {
		v.until(g[0], "asked when to renew", func(r *Record) bool { return r.Renewal != nil })
	}
	v.Close()
	var asked atomic.Int32
	a.Meddle = func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false }
	w := a.manager(s)
	for !w.Load() {
		testhouse.Pause()
	}
	w.setWanted(a.entry(), groups...)
	for _, g := range groups {
		w.state(g[0], Valid)
	}
	m := w.Manager
	m.mu.Lock()
	for name, j := range m.mu.jobs {
		if !j.at.Equal(j.record.NextTry) || j.running {
			t.Errorf("%s is looked at again at %v, want %v as before the start", name, j.at, j.record.NextTry)
		}
	}
	m.mu.Unlock()
	w.setWanted(a.entry(), groups[0], []string{"b.example.com", "c.example.com"}) // another name is looked at at once
	w.until("b.example.com", "ordered anew", func(r *Record) bool { return len(r.Has) == 2 })
	if asked.Load() == 0 {
		t.Error("nothing was asked for the new name")
	}
}

func TestCertificatesAreAnnouncedWhenTheStoreComesBack(t *testing.T) {
	a := start(t, acmetest.Settings{})
	s := newStore()
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixOrder + "a.example.com", Value: must(json.Marshal(usualRecord("a.example.com")))}}}); err != nil {
		t.Fatal(err)
	}
	away := &awayStore{faulty: s}
	away.away.Store(true)
	loaded := make(chan struct{})
	m := New(Options{Log: slog.New(slog.DiscardHandler), Store: away, Ports: &a.ports, Loaded: func() { close(loaded) }})
	m.pace = quickPace
	defer m.Close()
	if m.Load() {
		t.Fatal("loaded from a store that is away")
	}
	m.Start()
	away.away.Store(false)
	select {
	case <-loaded:
	case <-time.After(patience):
		t.Fatal("nobody was told that the store came back")
	}
	if r := m.Find("a.example.com"); r == nil || r.State != Valid {
		t.Errorf("got %+v", r)
	}
}

// awayStore is a store that cannot be read for a while.
type awayStore struct {
	*faulty
	away atomic.Bool
}

func (s *awayStore) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	if s.away.Load() {
		return nil, store.Position{}, store.ErrUnavailable
	}
	return s.faulty.Snapshot(ctx, prefix)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
