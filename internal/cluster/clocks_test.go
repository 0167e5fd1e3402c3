package cluster_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// TestClocksThatDiffer holds that machines whose clocks differ by six hours have one time, that
// of the engine: what expires in an hour is there on both, and gone on both when it is over.
func TestClocksThatDiffer(t *testing.T) {
	var passed atomic.Int64
	e := engine{memory.NewAt(func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }), &atomic.Bool{}}
	open := func(ahead time.Duration) *cluster.Store {
		files, err := local.Open(local.Options{Dir: t.TempDir(), Clock: func() time.Time { return time.Now().Add(ahead) }})
		if err != nil {
			t.Fatal(err)
		}
		s, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: e, Name: "shared"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	a, b := open(3*time.Hour), open(-3*time.Hour)
	for name, s := range map[string]*cluster.Store{"a": a, "b": b} {
		if off := time.Since(store.Time(s)); off.Abs() > time.Second {
			t.Errorf("the time of %s differs from the engine's by %v", name, off)
		}
	}
	if _, err := a.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "short", Value: []byte("1"), TTL: time.Hour}}}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*cluster.Store{"a": a, "b": b} {
		testhouse.Eventually(t, name+" has it", func() bool { _, err := s.Get(t.Context(), "short"); return err == nil })
	}

	e.away.Store(true) // the engine can remove nothing from the copies
	passed.Store(int64(time.Hour + time.Second))
	for name, s := range map[string]*cluster.Store{"a": a, "b": b} {
		if _, err := s.Now(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "short"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after an hour %s still has it: %v", name, err)
		}
	}
}
