package storetest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"headgate/internal/store"
)

func testNow(t *testing.T, e Engine) {
	before, err := e.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(3 * time.Hour)
	after, err := e.Store.Now(t.Context())
	if err != nil || after.Sub(before) < 3*time.Hour {
		t.Errorf("three hours later it is %v, %v; it was %v", after, err, before)
	}
	put(t, e.Store, "user/a", "x")
	if got := get(t, e.Store, "user/a"); got.Modified.Before(after) {
		t.Errorf("an entry was written at %v, and before that it was %v", got.Modified, after)
	}
	if _, err := e.Store.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/a", TTL: -1}}}); err == nil {
		t.Error("a negative time to live is accepted")
	}
}

func testChain(t *testing.T, e Engine) {
	s := e.Store
	put(t, s, "user/first", "x")
	start := position(t, s)
	if start.ID == "" {
		t.Fatal("the newest commit has no identifier")
	}
	given := store.NewID()
	commit(t, s, store.Change{ID: given, Put: []store.Entry{{Key: "node/a", Value: []byte("1")}}, Delete: []string{"user/first"}})
	put(t, s, "certificate/a", "2")
	commit(t, s, store.Change{Append: []store.Record{{Stream: "audit", Data: []byte("3")}}})
	put(t, s, "node/a", "4")
	last := start
	seen := []store.ID{start.ID}
	for b, err := range s.Watch(t.Context(), "", start) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Revision != last.Revision+1 || b.Before != last.ID || b.ID == "" || slices.Contains(seen, b.ID) || b.Time.IsZero() {
			t.Errorf("revision %d is %q after %q at %v; the one before is %q", b.Revision, b.ID, b.Before, b.Time, last.ID)
		}
		if b.Revision == start.Revision+1 && b.ID != given {
			t.Errorf("the commit is %q, and the change %q", b.ID, given)
		}
		last, seen = b.Position, append(seen, b.ID)
		if b.Revision == start.Revision+4 {
			break
		}
	}
	if now := position(t, s); now != last {
		t.Errorf("a snapshot is at %v, the watch has come to %v", now, last)
	}
	s = e.Again(t)
	if now := position(t, s); now != last {
		t.Errorf("after opening again the chain ends with %v, want %v", now, last)
	}
	put(t, s, "node/a", "5")
	for b, err := range s.Watch(t.Context(), "", last) {
		if err != nil || b.Before != last.ID {
			t.Errorf("after opening again a commit follows %q, %v; want %q", b.Before, err, last.ID)
		}
		break
	}
}

// watchError returns the first error of a watch that has nothing to yield, or nil when it
// waits.
func watchError(t *testing.T, s store.Store, after store.Position) error {
	t.Helper()
	put(t, s, "node/watch", "x") // so that a watch that goes on ends
	for _, err := range s.Watch(t.Context(), "", after) {
		return err
	}
	return nil
}

func testRewound(t *testing.T, e Engine) {
	s := e.Store
	for i := range 5 {
		put(t, s, "user/a", fmt.Sprint(i))
	}
	now := position(t, s)
	for name, test := range map[string]struct {
		after store.Position
		want  error
	}{
		"the newest commit":                  {now, nil},
		"only the number":                    {at(now.Revision), nil},
		"another commit of that number":      {store.Position{Revision: now.Revision, ID: store.NewID()}, store.ErrRewound},
		"another commit further back":        {store.Position{Revision: now.Revision - 2, ID: store.NewID()}, store.ErrRewound},
		"a number that was not reached":      {store.Position{Revision: now.Revision + 100, ID: store.NewID()}, store.ErrRewound},
		"a number that was not reached, too": {at(now.Revision + 100), store.ErrRewound},
	} {
		if err := watchError(t, s, test.after); !errors.Is(err, test.want) {
			t.Errorf("%s: the watch has %v, want %v", name, err, test.want)
		}
	}
}

func testLogAge(t *testing.T, e Engine) {
	s := e.Store
	old := store.NewID()
	commit(t, s, store.Change{ID: old, Put: []store.Entry{{Key: "user/a", Value: []byte("x")}}})
	start := position(t, s)
	put(t, s, "user/b", "x")
	if err := watchError(t, s, start); err != nil {
		t.Fatalf("a watch of today: %v", err)
	}
	e.Advance(store.LogAge + time.Hour)
	for i := range 3 {
		put(t, s, "user/c", fmt.Sprint(i))
	}
	if err := watchError(t, s, start); !errors.Is(err, store.ErrTooOld) {
		t.Errorf("a watch from before %v: %v, want ErrTooOld", store.LogAge, err)
	}
}

func testOnce(t *testing.T, e Engine) {
	s := e.Store
	change := store.Change{
		ID: store.NewID(), If: []store.Condition{{Key: "user/a"}}, Put: []store.Entry{{Key: "user/a", Value: []byte("x")}, {Key: "certificate/a", Value: []byte("x")}},
		Append: []store.Record{{Stream: "audit", Data: []byte("once")}},
	}
	first := commit(t, s, change)
	put(t, s, "user/a", "others have written since")
	for _, round := range []string{"at once", "after opening again"} {
		again, err := s.Commit(t.Context(), change)
		if err != nil || again != first {
			t.Errorf("the same change %s: got revision %d, %v; want %d", round, again, err, first)
		}
		if got := get(t, s, "user/a"); string(got.Value) != "others have written since" {
			t.Errorf("the same change %s was made again", round)
		}
		if records, err := s.Page(t.Context(), "audit", 0, 10); err != nil || len(records) != 1 {
			t.Errorf("the audit has %d records, %v", len(records), err)
		}
		s = e.Again(t)
	}
	if _, err := s.Commit(t.Context(), store.Change{ID: "short", Delete: []string{"user/a"}}); err == nil {
		t.Error("an invalid identifier is accepted")
	}
	same := store.Change{ID: store.NewID(), Append: []store.Record{{Stream: "events", Data: []byte("x")}}}
	var all sync.WaitGroup
	got := make([]store.Revision, 8)
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = s.Commit(t.Context(), same); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.Max(got) != slices.Min(got) {
		t.Errorf("eight times the same change at once has revisions %v", got)
	}
	if records, err := s.Page(t.Context(), "events", 0, 10); err != nil || len(records) != 1 {
		t.Errorf("eight times the same change has appended %d records, %v", len(records), err)
	}
}

func testLostAnswer(t *testing.T, e Engine) {
	if e.LoseAnswer == nil {
		t.Skip("the engine has no connection")
	}
	s := e.Store
	put(t, s, "user/a", "0")
	for i := range 5 {
		change := store.Change{ID: store.NewID(), Put: []store.Entry{{Key: "user/a", Value: fmt.Append(nil, i)}}, Append: []store.Record{{Stream: "audit", Data: fmt.Append(nil, i)}}}
		restore := e.LoseAnswer(t)
		_, err := s.Commit(t.Context(), change)
		if !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("a commit whose answer was lost: %v, want ErrUnknownOutcome", err)
		}
		if errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%v says that nothing was changed", err)
		}
		restore()
		at, err := s.Commit(t.Context(), change)
		if err != nil {
			t.Fatalf("the same change once more: %v", err)
		}
		if got := get(t, s, "user/a"); got.Revision != at || string(got.Value) != fmt.Sprint(i) {
			t.Errorf("round %d: the entry is %q of revision %d, the change has %d", i, got.Value, got.Revision, at)
		}
		if records, err := s.Page(t.Context(), "audit", 0, 10); err != nil || len(records) != i+1 {
			t.Errorf("round %d: the audit has %d records, %v", i, len(records), err)
		}
	}
}

// fill commits something of every kind.
func fill(t *testing.T, s store.Store) {
	t.Helper()
	for i, key := range keys() {
		put(t, s, key, fmt.Sprintf("value %d", i))
	}
	commit(t, s, store.Change{Put: []store.Entry{{Key: "session/short", Value: []byte("x"), TTL: time.Hour}}, Delete: []string{keys()[2]}})
	for i := range 5 {
		if _, err := s.Append(t.Context(), "audit", [][]byte{fmt.Append(nil, i), nil}); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := s.Acquire(t.Context(), "acme/a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// content is everything that a store has, to be compared.
func content(t *testing.T, s store.Store) (lines []string) {
	t.Helper()
	entries, now, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, fmt.Sprint(now))
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("%s %q %d %d %v", e.Key, e.Value, e.Revision, e.Modified.UnixMicro(), e.Expires.UnixMicro()))
	}
	for _, name := range []string{"audit", "events"} {
		page, err := s.Page(t.Context(), name, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			lines = append(lines, fmt.Sprintf("%s %d %d %q", r.Stream, r.Sequence, r.Time.UnixMicro(), r.Data))
		}
	}
	return lines
}

func testMove(t *testing.T, e Engine) {
	fill(t, e.Store)
	want := content(t, e.Store)
	other := e.Other(t)
	if err := other.Store.Import(t.Context(), e.Store.Export(t.Context())); err != nil {
		t.Fatal(err)
	}
	s := other.Store
	for _, when := range []string{"after the import", "after opening again"} {
		if got := content(t, s); !slices.Equal(got, want) {
			t.Errorf("%s it has\n%q\nwant\n%q", when, got, want)
		}
		s = other.Again(t)
	}
	last := position(t, s)
	if next := put(t, s, "user/next", "x"); next != last.Revision+1 {
		t.Errorf("the next revision is %d, want %d", next, last.Revision+1)
	}
	for b, err := range s.Watch(t.Context(), "", last) {
		if err != nil || b.Before != last.ID {
			t.Errorf("the next commit follows %q, %v; want %q", b.Before, err, last.ID)
		}
		break
	}
	if at, err := s.Append(t.Context(), "audit", [][]byte{nil}); err != nil || at != 11 {
		t.Errorf("the next record has sequence %d, %v; want 11", at, err)
	}
	lease, err := s.Acquire(t.Context(), "acme/a", time.Minute)
	if err != nil || lease.Token < 2 {
		t.Fatalf("the next lease: %v, %v; want a token above that of before", lease, err)
	}
	lease.Release(t.Context())
	if err := s.Import(t.Context(), e.Store.Export(t.Context())); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("an import into a store in use: %v", err)
	}
}

// cutOff yields the first items, and then an error.
func cutOff(items iter.Seq2[store.Item, error], n int) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for item, err := range items {
			if n--; n < 0 {
				yield(store.Item{}, errors.New("cut off"))
				return
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

func testHalfImport(t *testing.T, e Engine) {
	fill(t, e.Store)
	want := content(t, e.Store)
	other := e.Other(t)
	s := other.Store
	for n := range 4 {
		if err := s.Import(t.Context(), cutOff(e.Store.Export(t.Context()), 7*n)); err == nil {
			t.Fatal("half an import is no error")
		}
		for range 2 {
			if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/x"}}}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("after half an import a change is made: %v", err)
			}
			s = other.Again(t)
		}
	}
	if err := s.Import(t.Context(), e.Store.Export(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s); !slices.Equal(got, want) {
		t.Errorf("after the import was repeated it has\n%q\nwant\n%q", got, want)
	}
	put(t, s, "user/x", "x")
}

func testFreeze(t *testing.T, e Engine) {
	s := e.Store
	put(t, s, "user/a", "x")
	if err := s.Freeze(t.Context(), "postgres"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/a", Value: []byte("y")}}})
		_, err2 := s.Append(t.Context(), "audit", [][]byte{nil})
		_, err3 := s.Acquire(t.Context(), "acme/a", time.Minute)
		for i, err := range []error{err, err2, err3} {
			if !errors.Is(err, store.ErrMoved) || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("call %d after the move: %v, want ErrMoved", i, err)
			}
		}
		if got := get(t, s, "user/a"); string(got.Value) != "x" {
			t.Errorf("a store that has moved has %q", got.Value)
		}
		s = e.Again(t)
	}
	if err := s.Freeze(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	put(t, s, "user/a", "y")
}
