//go:build unix

package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

func TestReadDoesNotWaitAtAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := read(name, nil)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Errorf("got %v, want that it is not a regular file", err)
		}
	case <-time.After(testhouse.Patience):
		w, err := os.OpenFile(name, os.O_RDWR, 0) // lets the reader go
		if err == nil {
			w.Close()
		}
		t.Error("it waits for a writer")
	}
}
