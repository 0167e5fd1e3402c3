package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// engine is a store in memory that several machines reach, and that can be away.
type engine struct {
	*memory.Store
	away *atomic.Bool
}

func (e engine) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if e.away.Load() {
		return 0, store.ErrUnavailable
	}
	return e.Store.Commit(ctx, c)
}

func (e engine) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	if e.away.Load() {
		return nil, store.Position{}, store.ErrUnavailable
	}
	return e.Store.Snapshot(ctx, prefix)
}

func (e engine) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		if e.away.Load() {
			yield(store.Batch{}, store.ErrUnavailable)
			return
		}
		for b, err := range e.Store.Watch(ctx, prefix, after) {
			if e.away.Load() {
				yield(store.Batch{}, store.ErrUnavailable)
				return
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Close leaves the engine to the other machines.
func (engine) Close() error { return nil }

func open(t *testing.T, dir string, e store.Store) *cluster.Store {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	files, err := local.Open(local.Options{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: e, Name: "shared", Log: log})
	if err != nil {
		files.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, s store.Store, key, value string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: key, Value: []byte(value)}}, Append: []store.Record{{Stream: "audit", Data: []byte(value)}}}); err != nil {
		t.Fatal(err)
	}
}

// has waits until a machine has a value: what another has committed comes soon.
func has(t *testing.T, s store.Store, key, want string) {
	t.Helper()
	for i := 0; ; i++ {
		e, err := s.Get(t.Context(), key)
		if err == nil && string(e.Value) == want || errors.Is(err, store.ErrNotFound) && want == "" {
			return
		}
		if i > 2000 {
			t.Fatalf("%s is %q, %v; want %q", key, e.Value, err, want)
		}
		testhouse.Pause()
	}
}

func TestMachinesShareTheirState(t *testing.T) {
	e := engine{memory.New(), &atomic.Bool{}}
	dirs := []string{t.TempDir(), t.TempDir()}
	a, b := open(t, dirs[0], e), open(t, dirs[1], e)
	put(t, a, "certificate/x", "of a")
	if got, err := a.Get(t.Context(), "certificate/x"); err != nil || string(got.Value) != "of a" {
		t.Fatalf("the machine that has committed reads %q, %v", got.Value, err)
	}
	has(t, b, "certificate/x", "of a")
	got, err := b.Get(t.Context(), "certificate/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(t.Context(), store.Change{If: []store.Condition{{Key: got.Key, Revision: got.Revision}}, Put: []store.Entry{{Key: got.Key, Value: []byte("of b")}}}); err != nil {
		t.Errorf("a condition on a revision that the other machine gave: %v", err)
	}
	has(t, a, "certificate/x", "of b")

	e.away.Store(true)
	if _, err := a.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/x"}}}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change while the engine is away: %v", err)
	}
	has(t, a, "certificate/x", "of b")
	a.Close()
	a = open(t, dirs[0], e) // a start without the engine has everything
	has(t, a, "certificate/x", "of b")
	if state, _ := a.State(); state != cluster.Detached {
		t.Errorf("without the engine the state is %s", state)
	}
	e.away.Store(false)
	for i := range 50 {
		put(t, b, fmt.Sprintf("user/%d", i), "x")
	}
	if _, err := e.Store.Commit(t.Context(), store.Change{Delete: []string{"certificate/x"}}); err != nil {
		t.Fatal(err)
	}
	has(t, a, "certificate/x", "")
	has(t, a, "user/49", "x")
}

// A machine that was off for longer than the log goes back gets what differs.
// fetching notes which entries of an engine are read.
type fetching struct {
	engine
	keys map[string]bool
}

func (f *fetching) Get(ctx context.Context, key string) (store.Entry, error) {
	if f.keys == nil {
		f.keys = map[string]bool{}
	}
	f.keys[key] = true
	return f.engine.Get(ctx, key)
}

// Only what differs is fetched.
func TestAMachineThatWasOffForLongComparesWithTheStore(t *testing.T) {
	var passed atomic.Int64
	begin := time.Now()
	e := engine{memory.NewAt(func() time.Time { return begin.Add(time.Duration(passed.Load())) }), &atomic.Bool{}}
	dir := t.TempDir()
	a := open(t, dir, e)
	for i := range 30 {
		put(t, a, fmt.Sprintf("user/%d", i), "old")
	}
	a.Close()
	if _, err := e.Store.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/1", Value: []byte("new")}, {Key: "certificate/y", Value: []byte("new")}}, Delete: []string{"user/2"}}); err != nil {
		t.Fatal(err)
	}
	passed.Add(int64(store.LogAge + time.Hour))
	put(t, e.Store, "user/3", "newest")
	fetched := &fetching{engine: e}
	a = open(t, dir, fetched)
	if keys := slices.Sorted(maps.Keys(fetched.keys)); !slices.Equal(keys, []string{"certificate/y", "user/1", "user/3"}) {
		t.Errorf("fetched %v, want what differs", keys)
	}
	want, at, err := e.Store.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	got, mine, err := a.Snapshot(t.Context(), "")
	if err != nil || mine != at || len(got) != len(want) {
		t.Fatalf("%d entries at %v, %v; want %d at %v", len(got), mine, err, len(want), at)
	}
	for i := range want {
		if got[i].Key != want[i].Key || string(got[i].Value) != string(want[i].Value) || got[i].Revision != want[i].Revision {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

// A machine takes nothing from a store that was set back, and changes nothing in it.
func TestAStoreThatWasSetBackIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	e := engine{memory.New(), &atomic.Bool{}}
	a := open(t, dir, e)
	put(t, a, "user/x", "mine")
	put(t, a, "user/y", "mine")
	a.Close()
	older := engine{memory.New(), &atomic.Bool{}}
	for range 20 {
		put(t, older.Store, "user/x", "of another history")
	}
	a = open(t, dir, older)
	if state, err := a.State(); state != cluster.Rewound || !errors.Is(err, store.ErrRewound) {
		t.Errorf("the state is %s, %v; want rewound", state, err)
	}
	has(t, a, "user/x", "mine")
	if _, err := a.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/x"}}}); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrRewound) {
		t.Errorf("a change is made in a store that was set back: %v", err)
	}
}

func TestAStateOfItsOwnIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	files, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	put(t, files, "user/x", "mine")
	defer files.Close()
	if _, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: memory.New(), Name: "shared"}); !errors.Is(err, local.ErrOwn) {
		t.Errorf("a state directory of its own becomes a copy: %v", err)
	}
}

// An operator decides whose state is right when the store was set back.
func TestAnOperatorDecidesAboutAStoreThatWasSetBack(t *testing.T) {
	for _, push := range []bool{false, true} {
		t.Run(fmt.Sprint("push ", push), func(t *testing.T) {
			dir := t.TempDir()
			e := engine{memory.New(), &atomic.Bool{}}
			a := open(t, dir, e)
			for i := range 100 {
				put(t, a, fmt.Sprintf("user/%d", i), "mine")
			}
			if err := a.Adopt(t.Context()); !errors.Is(err, cluster.ErrNotRewound) {
				t.Errorf("adopt where there is nothing to decide: %v", err)
			}
			a.Close()
			older := engine{memory.New(), &atomic.Bool{}}
			put(t, older.Store, "user/theirs", "theirs")
			for range 120 {
				put(t, older.Store, "user/7", "theirs")
			}
			a = open(t, dir, older)
			decide, want, theirs := a.Adopt, "theirs", "theirs"
			if push {
				decide, want, theirs = a.Push, "mine", ""
			}
			if err := decide(t.Context()); err != nil {
				t.Fatal(err)
			}
			if h := a.Health(); h.State != cluster.Following || h.Revision != h.Head {
				t.Errorf("after the decision: %+v", h)
			}
			b := open(t, t.TempDir(), older)
			for _, s := range []store.Store{a, b} {
				has(t, s, "user/7", want)
				has(t, s, "user/theirs", theirs)
				if _, err := s.Get(t.Context(), "user/99"); push != (err == nil) {
					t.Errorf("user/99: %v", err)
				}
			}
			put(t, a, "user/new", "again")
			has(t, b, "user/new", "again")
		})
	}
}

// What is written to a copy would be lost: it is refused, and a copy of one store does not
// become that of another without an operator.
func TestACopyIsChangedThroughItsStoreOnly(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, engine{memory.New(), &atomic.Bool{}})
	put(t, a, "user/a", "shared")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if _, err := files.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/b", Value: []byte("lost")}}}); !errors.Is(err, local.ErrCopy) {
		t.Errorf("a commit to a copy: %v", err)
	}
	if _, err := files.Append(t.Context(), store.StreamAudit, [][]byte{[]byte("lost")}); !errors.Is(err, local.ErrCopy) {
		t.Errorf("a record for a copy: %v", err)
	}
	other := (*local.Other)(nil)
	if _, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: memory.New(), Name: "another"}); !errors.As(err, &other) || other.Of == "" {
		t.Errorf("a copy of another store: %v", err)
	}
	if err := files.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/b", Value: []byte("own")}}}); err != nil {
		t.Errorf("a commit to a state of its own: %v", err)
	}
}
