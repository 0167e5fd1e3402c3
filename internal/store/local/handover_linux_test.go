package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate/internal/store"
)

// filesOf returns what is in a directory, by name, with when it was changed.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all[path] = info.ModTime().Format(time.RFC3339Nano)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func put(t *testing.T, s *Store, key string) error {
	t.Helper()
	_, err := s.Commit(context.Background(), store.Change{Put: []store.Entry{{Key: key, Value: []byte("{}")}}, Who: "test"})
	return err
}

// TestHandOver gives a directory to another store, which writes nothing before Begin.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	old, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := put(t, old, "user/one"); err != nil {
		t.Fatal(err)
	}
	lock, err := old.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	next, err := Open(Options{Dir: dir, Lock: lock, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Get(context.Background(), "user/one"); err != nil {
		t.Errorf("read before Begin: %v", err)
	}
	written := make(chan error, 1)
	go func() { written <- put(t, next, "user/two") }()
	waited := make(chan error, 1)
	go func() { waited <- put(t, old, "user/three") }()
	for name, at := range filesOf(t, dir) {
		if before[name] != at {
			t.Errorf("%s was written before Begin", name)
		}
	}
	select {
	case err := <-written:
		t.Errorf("written before Begin: %v", err)
	case err := <-waited:
		t.Errorf("written while suspended: %v", err)
	default:
	}
	if _, err := Open(Options{Dir: dir}); !errors.As(err, new(*InUse)) {
		t.Errorf("a third store: %v, want *InUse", err)
	}
	old.ReleaseLock()
	if _, err := Open(Options{Dir: dir}); !errors.As(err, new(*InUse)) {
		t.Errorf("a third store after the lock was released: %v, want *InUse", err)
	}
	if err := old.Resume(); !errors.As(err, new(*InUse)) {
		t.Errorf("thawed beside the other store: %v, want *InUse", err)
	}
	next.EnableWrites()
	if err := <-written; err != nil {
		t.Error(err)
	}
	next.Close()
	if err := old.Resume(); err != nil {
		t.Fatalf("thaw after the other store has gone: %v", err)
	}
	if err := <-waited; err != nil {
		t.Errorf("what waited while suspended: %v", err)
	}
	for _, key := range []string{"user/one", "user/two", "user/three"} {
		if _, err := old.Get(context.Background(), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	old.Close()
}

// TestRefuseWrites is a new process that must not replace the old one: what waits to write
// gets an error, so that the process can end and release the lock.
func TestRefuseWrites(t *testing.T) {
	dir := t.TempDir()
	old, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := old.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	next, err := Open(Options{Dir: dir, Lock: lock, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- put(t, next, "user/two") }()
	next.RefuseWrites()
	if err := <-written; !errors.Is(err, store.ErrClosed) {
		t.Errorf("what waited to write: %v, want store.ErrClosed", err)
	}
	if err := put(t, next, "user/three"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("what is written afterwards: %v, want store.ErrClosed", err)
	}
	if err := next.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	old.ReleaseLock()
	if err := old.Resume(); err != nil {
		t.Errorf("the lock was not released: %v", err)
	}
	old.Close()
}

// TestResumeAfterAHeldStore is an upgrade that fails before the new process begins.
func TestResumeAfterAHeldStore(t *testing.T) {
	dir := t.TempDir()
	old, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	lock, err := old.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	next, err := Open(Options{Dir: dir, Lock: lock, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	if err := old.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := put(t, old, "user/one"); err != nil {
		t.Error(err)
	}
}

func TestEndOfASuspendedStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- put(t, s, "user/one") }()
	s.End()
	if err := <-waited; !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want store.ErrClosed", err)
	}
	lock.Close()
	s.ReleaseLock()
	again, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := os.Stat(filepath.Join(dir, dbName)); err != nil {
		t.Error(err)
	}
}
