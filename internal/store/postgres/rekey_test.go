//go:build unix

package postgres

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/store"
)

// openWith opens a store with a key. Reread may be nil.
func openWith(t *testing.T, database string, key []byte, reread func() ([]byte, error)) *Store {
	t.Helper()
	s, err := Open(Options{URL: urlOf(database), Key: key, Node: "a", Timeout: time.Minute, Log: slog.New(slog.DiscardHandler), Reread: reread})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// becomes repeats a call until it has a result. Connections that the server has ended fail
// once.
func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in 30s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Everything is sealed with the new key, and a node with the one before neither reads nor
// writes until its operator gives it the new one.
func TestTheKeyIsReplaced(t *testing.T) {
	const records = 300 // more than a page
	database, next := newDatabase(t), bytes.Repeat([]byte{9}, 32)
	var given atomic.Bool
	reread := func() ([]byte, error) {
		if given.Load() {
			return next, nil
		}
		return groupKey(), nil
	}
	a, b := openWith(t, database, groupKey(), nil), openWith(t, database, groupKey(), reread)
	for _, key := range []string{"user/a", "user/b"} {
		if _, err := putOne(t, a, key, "of "+key); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		if _, err := b.Append(t.Context(), store.StreamAudit, slices.Repeat([][]byte{[]byte("record")}, records/5)); err != nil {
			t.Fatal(err)
		}
	}
	n, err := openWith(t, database, groupKey(), nil).Rekey(t.Context(), next)
	if want := 2 + records; err != nil || n != want {
		t.Fatalf("Rekey: %d, %v; want %d", n, err, want)
	}
	for name, s := range map[string]*Store{"a": a, "b": b} {
		becomes(t, name+" has the wrong key", func() bool {
			_, err := putOne(t, s, "user/a", "not written")
			if err == nil {
				t.Fatalf("%s has written with the key before", name)
			}
			return errors.Is(err, ErrKey)
		})
	}
	if err := a.TryKey(t.Context(), next); err != nil {
		t.Errorf("TryKey with the new key: %v", err)
	}
	if err := a.TryKey(t.Context(), groupKey()); !errors.Is(err, ErrKey) {
		t.Errorf("TryKey with the key before: %v", err)
	}
	c := openWith(t, database, next, nil)
	if e, err := c.Get(t.Context(), "user/a"); err != nil || string(e.Value) != "of user/a" {
		t.Errorf("with the new key: %q, %v", e.Value, err)
	}
	if page, err := c.Page(t.Context(), store.StreamAudit, 0, store.MaxPage); err != nil || len(page) != records {
		t.Errorf("with the new key: %d records, %v", len(page), err)
	}
	given.Store(true)
	becomes(t, "b writes with the new key", func() bool {
		_, err := putOne(t, b, "user/b", "again")
		return err == nil
	})
	if e, err := c.Get(t.Context(), "user/b"); err != nil || string(e.Value) != "again" {
		t.Errorf("what b wrote: %q, %v", e.Value, err)
	}
}

// A database that was emptied gets the tables again. A watch from the history before ends.
func TestADatabaseThatWasEmptiedIsNoticed(t *testing.T) {
	database := newDatabase(t)
	s := openWith(t, database, groupKey(), nil)
	for range 3 {
		if _, err := putOne(t, s, "user/a", "before"); err != nil {
			t.Fatal(err)
		}
	}
	_, at, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := statement(database, "DROP SCHEMA headgate CASCADE"); err != nil {
		t.Fatal(err)
	}
	becomes(t, "the watch ends", func() bool {
		for _, err := range s.Watch(t.Context(), "", at) {
			return errors.Is(err, store.ErrRewound)
		}
		return false
	})
	becomes(t, "changes are made again", func() bool {
		n, err := putOne(t, s, "user/b", "after")
		return err == nil && n > 0
	})
	if e, err := s.Get(t.Context(), "user/a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was there before: %q, %v", e.Value, err)
	}
}
