package cluster_test

import (
	"context"
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

func commit(s store.Store, key, value string) error {
	_, err := s.Commit(context.Background(), store.Change{Put: []store.Entry{{Key: key, Value: []byte(value)}}})
	return err
}

// openMember opens the store of a machine with a state directory.
func openMember(t *testing.T, dir string, e engine, hold bool) (*cluster.Store, *local.Store) {
	t.Helper()
	files, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: e, Name: "shared", Hold: hold})
	if err != nil {
		t.Fatal(err)
	}
	return s, files
}

// TestSuspendedStoreChangesNothing holds that while another process takes over no change gets
// to the engine, leases are given back, and Resume continues with what others have changed.
func TestSuspendedStoreChangesNothing(t *testing.T) {
	e := engine{memory.New(), &atomic.Bool{}}
	s, _ := openMember(t, t.TempDir(), e, false)
	defer s.Close()
	l, err := s.Acquire(t.Context(), "acme/x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.StopFollowing()
	if err := s.Suspend(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
	default:
		t.Error("a lease is held by a suspended store")
	}
	if _, err := e.Acquire(t.Context(), "acme/x", time.Minute); err != nil {
		t.Errorf("others cannot acquire the lease: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- commit(s, "a", "1") }()
	if err := commit(e, "b", "2"); err != nil { // of another machine
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := s.Append(short, "audit", [][]byte{[]byte("x")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a record: %v", err)
	}
	if _, err := e.Get(t.Context(), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a change of a suspended store: %v", err)
	}
	s.Resume()
	if err := <-ended; err != nil {
		t.Errorf("the change that has waited: %v", err)
	}
	testhouse.Eventually(t, "the copy has both", func() bool {
		_, err1 := s.Get(t.Context(), "a")
		_, err2 := s.Get(t.Context(), "b")
		return err1 == nil && err2 == nil
	})
}

// TestSuspendedStoreEnds holds that what waits is refused at the end of a process that was
// replaced.
func TestSuspendedStoreEnds(t *testing.T) {
	e := engine{memory.New(), &atomic.Bool{}}
	s, files := openMember(t, t.TempDir(), e, false)
	s.StopFollowing()
	if err := s.Suspend(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- commit(s, "a", "1") }()
	s.End()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("what waits: %v", err)
	}
	files.Close()
}

// TestHeldStoreWaits opens the store as a process that is to replace another: it changes
// nothing until that has released it, and nothing at all if it does not.
func TestHeldStoreWaits(t *testing.T) {
	e, dir := engine{memory.New(), &atomic.Bool{}}, t.TempDir()
	s, _ := openMember(t, dir, e, false)
	if err := commit(s, "a", "1"); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s, _ = openMember(t, dir, e, true)
	if _, err := s.Get(t.Context(), "a"); err != nil {
		t.Errorf("the copy is not served: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- commit(s, "b", "2") }()
	if state, err := s.State(); state != cluster.Detached || err != nil {
		t.Errorf("state %v, %v", state, err)
	}
	s.Resume()
	if err := <-ended; err != nil {
		t.Errorf("the change that has waited: %v", err)
	}
	s.RefuseWrites() // has no effect any more
	if err := commit(s, "c", "3"); err != nil {
		t.Error(err)
	}
	s.Close()

	s, _ = openMember(t, dir, e, true)
	go func() { ended <- commit(s, "d", "4") }()
	s.RefuseWrites()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("a change of a process that must not take over: %v", err)
	}
	s.Close()
	if _, err := e.Get(t.Context(), "d"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was made: %v", err)
	}
}

// stuck is an engine whose commits do not end.
type stuck struct {
	engine
	let chan struct{}
}

func (e stuck) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	<-e.let
	return e.engine.Commit(ctx, c)
}

// TestSuspendGivesUp holds that a change that does not end keeps another process from taking
// over, and that everything goes on then.
func TestSuspendGivesUp(t *testing.T) {
	t.Parallel() // it waits
	files, err := local.Open(local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e := stuck{engine{memory.New(), &atomic.Bool{}}, make(chan struct{})}
	s, err := cluster.Open(t.Context(), cluster.Options{Copy: files, Engine: e, Name: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := make(chan error, 1)
	go func() { ended <- commit(s, "a", "1") }()
	testhouse.Pause()
	s.StopFollowing()
	if err := s.Suspend(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("suspended: %v", err)
	}
	s.Resume()
	close(e.let)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := commit(s, "b", "2"); err != nil {
		t.Error(err)
	}
}
