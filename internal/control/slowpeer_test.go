//go:build unix

package control

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// within returns the error of do, which must not wait for a client that is slow.
func within(t *testing.T, what string, do func() error) error {
	t.Helper()
	ctx, cancel := testhouse.Patient(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		t.Fatalf("%s waits for a slow client", what)
		return nil
	}
}

// slowClient is a writer whose client reads nothing until it is let.
type slowClient struct {
	let     chan struct{}
	reached chan struct{}
}

func (s *slowClient) Write(p []byte) (int, error) {
	select {
	case s.reached <- struct{}{}:
	default:
	}
	<-s.let
	return len(p), nil
}

func TestASlowReaderOfABackupDelaysNoChange(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	before := document(201, "a "+at[0])
	h := start(t, before)
	client, sent := &slowClient{let: make(chan struct{}), reached: make(chan struct{}, 1)}, make(chan error, 1)
	go func() { sent <- h.c.Backup(context.Background(), client, "") }()
	<-client.reached

	edit := replaceWith(Cause{Who: "anna", Via: ViaAPI}, document(202, "a "+at[0]))
	edit.ConfirmWithin = time.Hour
	err := within(t, "a change", func() error { _, err := h.c.Change(edit); return err })
	if err != nil {
		t.Fatal(err)
	}
	expectStatus(t, at[0], 202)
	_ = within(t, "a revert", func() error { h.c.revert(2); return nil })
	expectStatus(t, at[0], 201)
	_ = within(t, "a look at the store", func() error {
		_, err := h.c.state.List(context.Background(), "token/", "", 1)
		return err
	})
	_ = within(t, "the end", func() error { h.finish(); return nil })
	close(client.let)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// An access log that is a pipe has a reader, too.
func TestASlowReaderOfAnAccessLogDelaysNoChange(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, withLog(201, path, "a "+at[0]))
	// The pipe is full, so that the line of a request has no place.
	writer, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := writer.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		for size := 4096; size > 0; size /= 2 {
			for err := error(nil); err == nil; {
				_, err = syscall.Write(int(fd), make([]byte, size))
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	expectStatus(t, at[0], 201)
	h.apply(document(202, "a "+at[0]))
	if strings.Contains(h.log.String(), "access log not flushed") {
		t.Error("the change has waited for the reader of the access log")
	}
	expectStatus(t, at[0], 202)
	go io.Copy(io.Discard, reader)
	h.finish()
	reader.Close()
}
