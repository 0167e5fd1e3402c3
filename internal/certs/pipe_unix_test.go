//go:build unix

package certs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

func TestLoadDoesNotWaitAtAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Load(name, name)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Errorf("got %v, want that it is not a regular file", err)
		}
	case <-time.After(testhouse.Patience):
		if w, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			w.Close() // lets the reader go
		}
		t.Error("it waits for a writer")
	}
}
