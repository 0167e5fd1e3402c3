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

	"headgate/internal/testhouse"
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

// A log that is retired, as by a change of its settings, loses no record of exchanges that
// end while it is still writing.
func TestARecordWhileTheLogIsRetiredIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, err := Open(Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ex := sample()
	line := len(l.appendLine(nil, ex, nil, &clock{}))
	records := 4 * bufferSize / line // more than a pipe holds
	for range records {
		l.Record(ex)
	}
	retired := make(chan struct{})
	go func() {
		defer close(retired)
		l.Retire()
	}()
	testhouse.Eventually(t, "the log takes no more", func() bool {
		s := &l.shards[len(l.shards)-1]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mu.closed
	})
	for range 3 {
		l.Record(ex)
	}
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(reader)
		read <- b
	}()
	<-retired
	l.Record(ex)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(<-read, []byte{'\n'}); n != records+4 || l.Lost() > 0 {
		t.Errorf("%d lines and %d lost of %d records", n, l.Lost(), records+4)
	}
}
