package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// stalled is a client that reads or sends a byte only when it is let.
type stalled struct {
	reached chan struct{} // it was called
	let     chan struct{}
	data    io.Reader // what it sends
}

func newStalled(data []byte) *stalled {
	return &stalled{reached: make(chan struct{}, 1), let: make(chan struct{}), data: bytes.NewReader(data)}
}

func (s *stalled) wait() {
	select {
	case s.reached <- struct{}{}:
	default:
	}
	<-s.let
}

func (s *stalled) Write(p []byte) (int, error) {
	s.wait()
	return len(p), nil
}

func (s *stalled) Read(p []byte) (int, error) {
	s.wait()
	return s.data.Read(p)
}

// goesOn holds that a store takes changes of both kinds, and reads, now.
func goesOn(t *testing.T, s *Store) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "user/1", Value: []byte("meanwhile")}, {Key: "certificate/meanwhile", Value: []byte("pem")}}})
		if err == nil {
			_, err = s.Get(t.Context(), "certificate/meanwhile")
		}
		done <- err
	}()
	ctx, cancel := testhouse.Patient(t.Context())
	defer cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("the store waits for the client of an archive")
	}
}

func TestASlowReaderOfABackupHoldsUpNobody(t *testing.T) {
	for _, size := range []int{10, 3 * spoolMemory} {
		dir := t.TempDir()
		s := openDir(t, Options{Dir: dir})
		for range max(1, size/(store.MaxChange/2)) {
			noise := make([]byte, min(size, store.MaxChange/2))
			rand.Read(noise)
			if _, err := s.Append(t.Context(), "audit", [][]byte{noise}); err != nil {
				t.Fatal(err)
			}
		}
		client, done := newStalled(nil), make(chan error, 1)
		go func() { done <- s.Backup(t.Context(), client, "") }()
		<-client.reached
		goesOn(t, s)
		close(client.let)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, spoolName, "*")); len(left) > 0 {
			t.Errorf("left of the archive: %v", left)
		}
		s.Close()
	}
}

func TestASlowSenderOfAnArchiveHoldsUpNobody(t *testing.T) {
	archive := backed(t, "")
	s := openDir(t, Options{Dir: t.TempDir()})
	client, done := newStalled(archive), make(chan error, 1)
	go func() {
		a, err := s.OpenArchive(t.Context(), client, "")
		if err == nil {
			err = a.Close()
		}
		done <- err
	}()
	<-client.reached
	goesOn(t, s)
	a, err := s.OpenArchive(t.Context(), bytes.NewReader(archive), "") // of somebody else
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	close(client.let)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOnlyAFewArchivesAreOnTheirWayAtOnce(t *testing.T) {
	s := openDir(t, Options{Dir: t.TempDir()})
	done := make(chan error, maxSpools)
	var clients []*stalled
	for range maxSpools {
		client := newStalled(nil)
		go func() { done <- s.Backup(t.Context(), client, "") }()
		<-client.reached
		clients = append(clients, client)
	}
	if err := s.Backup(t.Context(), io.Discard, ""); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want that it is unavailable", err)
	}
	for _, client := range clients {
		close(client.let)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := s.Backup(t.Context(), io.Discard, ""); err != nil {
		t.Error(err)
	}
}

func TestWhatACrashLeftOfASpoolIsRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, spoolName, "archive-1")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	openDir(t, Options{Dir: dir})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
}
