package listen

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// breaks is a connection that answers one byte and breaks on the next.
type breaks struct{ net.Conn }

func (b breaks) Serve() (park func(resume func()) bool) {
	io.CopyN(b.Conn, b.Conn, 1)
	if _, err := io.ReadFull(b.Conn, make([]byte, 1)); err == nil {
		panic("told to")
	}
	return nil
}

func (b breaks) Drain() { b.Close() }

// lastLine notes what was logged.
type lastLine struct {
	mu   sync.Mutex
	text string
	told chan struct{}
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = string(p)
	close(l.told)
	return len(p), nil
}

func TestABrokenInvariantEndsOneConnection(t *testing.T) {
	log := &lastLine{told: make(chan struct{})}
	s, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Serve(func(nc net.Conn, _ bool) Conn { return breaks{nc} })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Bound().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	broken, other := dial(), dial()
	if _, err := broken.Write([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(broken); string(b) != "a" {
		t.Errorf("got %q before the end, want a", b)
	}
	<-log.told
	log.mu.Lock()
	defer log.mu.Unlock()
	if !strings.Contains(log.text, "told to") || !strings.Contains(log.text, s.Address().String()) {
		t.Errorf("the log says %q", log.text)
	}
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(other, make([]byte, 1)); err != nil {
		t.Errorf("another connection: %v", err)
	}
}
