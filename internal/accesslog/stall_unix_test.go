//go:build unix

package accesslog

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// logText is an application log that a test reads.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestStalledPipeDropsAndCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	app := &logText{}
	if _, err := Open(Config{Path: path}, slog.New(slog.NewTextHandler(app, nil))); err == nil {
		t.Fatal("Open of a pipe without a reader returned nil")
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, err := Open(Config{Path: path}, slog.New(slog.NewTextHandler(app, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ex := sample()
	records := 0
	for l.Lost() == 0 {
		l.Record(ex)
		if records++; records > 100_000 {
			t.Fatal("nothing was dropped after 100000 records")
		}
	}
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(reader)
		read <- b
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-read
	if n := bytes.Count(got, []byte{'\n'}); n+int(l.Lost()) != records {
		t.Errorf("%d lines and %d lost of %d records", n, l.Lost(), records)
	}
	if !strings.Contains(app.String(), "access log drops records") {
		t.Errorf("nobody was told: %s", app.String())
	}
}
