package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"headgate/internal/store"
)

func testWatch(t *testing.T, e Engine) {
	s := e.Store
	start := put(t, s, "node/start", "x")
	const commits = 200
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			want := start
			for b, err := range s.Watch(t.Context(), "", at(start)) {
				if err != nil {
					t.Errorf("watcher %d: %v", w, err)
					return
				}
				if want++; b.Revision != want {
					t.Errorf("watcher %d got revision %d, want %d", w, b.Revision, want)
					return
				}
				if b.Who != "anna" || b.Why != "because" {
					t.Errorf("watcher %d got who %q, why %q", w, b.Who, b.Why)
				}
				if want == start+commits {
					return
				}
			}
		})
	}
	for i := range commits {
		key := keys()[i%len(keys())]
		c := store.Change{Who: "anna", Why: "because", Put: []store.Entry{{Key: key, Value: fmt.Appendf(nil, "%d", i)}}}
		if i%7 == 6 {
			c = store.Change{Who: "anna", Why: "because", Delete: []string{key}, Put: []store.Entry{{Key: "node/always"}}}
		}
		commit(t, s, c)
	}
	wg.Wait()
}

func testWatchPrefix(t *testing.T, e Engine) {
	s := e.Store
	start := put(t, s, "user/a", "1")
	commit(t, s, store.Change{Put: []store.Entry{{Key: "user/b", Value: []byte("1")}, {Key: "token/b", Value: []byte("1")}}})
	put(t, s, "token/a", "1")
	commit(t, s, store.Change{Delete: []string{"user/a", "token/a"}})
	var got []string
	for b, err := range s.Watch(t.Context(), "user/", at(start)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Put {
			got = append(got, fmt.Sprintf("%d+%s=%s", b.Revision-start, e.Key, e.Value))
		}
		for _, key := range b.Delete {
			got = append(got, fmt.Sprintf("%d-%s", b.Revision-start, key))
		}
		if len(got) == 2 {
			break
		}
	}
	if want := []string{"1+user/b=1", "3-user/a"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func testWatchTooOld(t *testing.T, e Engine) {
	s := e.Store
	now := put(t, s, "user/a", "1")
	value := make([]byte, store.MaxChange/2)
	for i := range 200 {
		put(t, s, fmt.Sprintf("node/%d", i%4), string(value))
		for _, err := range s.Watch(t.Context(), "", at(now-1)) {
			if errors.Is(err, store.ErrTooOld) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	t.Error("the engine remembers 200 commits of half a MiB: what it keeps for watches has no bound")
}

func testWatchEnds(t *testing.T, e Engine) {
	s := e.Store
	now := put(t, s, "user/a", "1")
	ends := func(ctx context.Context, want error, end func()) {
		t.Helper()
		got := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			close(begun)
			for _, err := range s.Watch(ctx, "user/", at(now)) {
				if err != nil {
					got <- err
				}
			}
		}()
		<-begun
		end()
		if err := <-got; !errors.Is(err, want) {
			t.Errorf("the watch ended with %v, want %v", err, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ends(ctx, context.Canceled, stop)
	ends(t.Context(), store.ErrClosed, func() { s.Close() })
}

func testLease(t *testing.T, e Engine) {
	s := e.Store
	first, err := s.Acquire(t.Context(), "acme/shop", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var held *store.Held
	if _, err := s.Acquire(t.Context(), "acme/shop", time.Minute); !errors.As(err, &held) || held.Until.IsZero() {
		t.Fatalf("a held lease: got %v, want *Held", err)
	}
	other, err := s.Acquire(t.Context(), "acme/other", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(40 * time.Second)
	if err := first.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Advance(40 * time.Second)
	if _, err := s.Acquire(t.Context(), "acme/shop", time.Minute); !errors.As(err, &held) {
		t.Errorf("a renewed lease: got %v, want *Held", err)
	}
	second, err := s.Acquire(t.Context(), "acme/other", time.Minute)
	if err != nil {
		t.Fatalf("a lease that was not renewed: %v", err)
	}
	if second.Token <= other.Token {
		t.Errorf("the token is %d after %d, want it to grow", second.Token, other.Token)
	}
	if err := other.Renew(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renewal of a lease that others have: %v", err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Acquire(t.Context(), "acme/other", time.Minute); !errors.As(err, &held) {
		t.Errorf("a release of the former holder gave the lease away: %v", err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	third, err := s.Acquire(t.Context(), "acme/other", time.Minute)
	if err != nil || third.Token <= second.Token {
		t.Errorf("a released lease: %v", err)
	}
	for _, ttl := range []time.Duration{0, -1, store.MaxLease + 1} {
		if l, err := s.Acquire(t.Context(), "acme/x", ttl); err == nil {
			t.Errorf("Acquire for %v = %v, want an error", ttl, l)
		}
	}
	for _, l := range []*store.Lease{first, third} {
		l.Release(t.Context())
	}
}

func testFenced(t *testing.T, e Engine) {
	s := e.Store
	first, err := s.Acquire(t.Context(), "acme/shop", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	change := func(l *store.Lease, value string) error {
		_, err := s.Commit(t.Context(), store.Change{Under: l, Put: []store.Entry{{Key: "certificate/shop", Value: []byte(value)}}})
		return err
	}
	if err := change(first, "first"); err != nil {
		t.Fatal(err)
	}
	e.Advance(2 * time.Minute)
	if err := change(first, "late"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a change under an ended lease: %v", err)
	}
	second, err := s.Acquire(t.Context(), "acme/shop", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := change(first, "late"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a change under the lease of another: %v", err)
	}
	if err := change(second, "second"); err != nil {
		t.Error(err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := change(second, "late"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a change under a released lease: %v", err)
	}
	if got := get(t, s, "certificate/shop"); string(got.Value) != "second" {
		t.Errorf("the value is %q, want second", got.Value)
	}
	s = e.Again(t)
	third, err := s.Acquire(t.Context(), "acme/shop", time.Minute)
	if err != nil || third.Token <= second.Token {
		t.Fatalf("after opening again: %v, token %v after %v", err, third, second.Token)
	}
	third.Release(t.Context())
}

func testStream(t *testing.T, e Engine) {
	s := e.Store
	var last store.Sequence
	for i := range 5 {
		var data [][]byte
		for j := range 5 {
			data = append(data, fmt.Appendf(nil, "%d", 5*i+j))
		}
		at, err := s.Append(t.Context(), "events", data)
		if err != nil || at != last+5 {
			t.Fatalf("Append = %d, %v; want %d", at, err, last+5)
		}
		last = at
	}
	if at, err := s.Append(t.Context(), "audit", [][]byte{[]byte("other")}); err != nil || at != 1 {
		t.Errorf("another stream begins with %d, %v", at, err)
	}
	s = e.Again(t)
	want := 24
	for before := store.Sequence(0); ; {
		page, err := s.Page(t.Context(), "events", before, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if string(r.Data) != fmt.Sprint(want) || r.Stream != "events" || r.Time.IsZero() || int(r.Sequence) != want+1 {
				t.Errorf("got %+v (%s), want %d", r, r.Data, want)
			}
			want--
		}
		if len(page) < 7 {
			break
		}
		before = page[len(page)-1].Sequence
	}
	if want != -1 {
		t.Errorf("paging ended before record %d", want)
	}
	if page, err := s.Page(t.Context(), "events", 100, 1); err != nil || len(page) != 1 || string(page[0].Data) != "24" {
		t.Errorf("Page before the future = %v, %v", page, err)
	}
	if page, err := s.Page(t.Context(), "never", 0, 1); err != nil || len(page) != 0 {
		t.Errorf("Page of nothing = %v, %v", page, err)
	}
}

func testRetention(t *testing.T, e Engine) {
	s := e.Store
	if _, err := s.Append(t.Context(), "events", [][]byte{[]byte("old"), []byte("old")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), "audit", [][]byte{[]byte("old")}); err != nil {
		t.Fatal(err)
	}
	e.Advance(31 * 24 * time.Hour)
	at, err := s.Append(t.Context(), "events", [][]byte{[]byte("new")})
	if err != nil || at != 3 {
		t.Fatalf("Append = %d, %v", at, err)
	}
	if _, err := s.Append(t.Context(), "audit", [][]byte{[]byte("new")}); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Page(t.Context(), "events", 0, 10); err != nil || len(page) != 1 || string(page[0].Data) != "new" {
		t.Errorf("events after 31 days = %v, %v; want the new one", page, err)
	}
	if page, err := s.Page(t.Context(), "audit", 0, 10); err != nil || len(page) != 2 {
		t.Errorf("audit after 31 days = %v, %v; want both", page, err)
	}
}

func testAudit(t *testing.T, e Engine) {
	s := e.Store
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil && i < 500; i++ {
			key := []string{"user/a", "certificate/a"}[i%2]
			_, err := s.Commit(t.Context(), store.Change{
				Put:    []store.Entry{{Key: key, Value: fmt.Appendf(nil, "%d", i)}},
				Append: []store.Record{{Stream: "audit", Data: fmt.Appendf(nil, "%d", i)}},
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		// What can be seen of a change is in the audit, and the other way round: the
		// audit that is read afterwards tells of all that was seen, and what was in
		// it before can be seen afterwards.
		told := newest(t, s)
		seen := max(number(t, s, "user/a"), number(t, s, "certificate/a"))
		if after := newest(t, s); seen < told || after < seen {
			t.Errorf("the audit told of %d, then %d was there, then it told of %d", told, seen, after)
		}
	}
	stop()
	wg.Wait()
	if told, seen := newest(t, s), max(number(t, s, "user/a"), number(t, s, "certificate/a")); told != seen {
		t.Errorf("the audit tells of %d, and %d is there", told, seen)
	}
}

func newest(t *testing.T, s store.Store) int {
	t.Helper()
	page, err := s.Page(t.Context(), "audit", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) == 0 {
		return -1
	}
	n, err := strconv.Atoi(string(page[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func number(t *testing.T, s store.Store, key string) int {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		return -1
	}
	n, aerr := strconv.Atoi(string(e.Value))
	if err != nil || aerr != nil {
		t.Fatal(err, aerr)
	}
	return n
}
