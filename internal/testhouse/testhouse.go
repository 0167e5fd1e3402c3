// Package testhouse holds what the tests of many packages need alike: connected
// sockets, free addresses, patience, and a log that can be read while it is written.
// Only tests import it.
package testhouse

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come at once.
const Patience = 20 * time.Second

// Eventually waits until something holds, and fails the test when that takes longer
// than Patience. what is said of it then.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// Pair returns the two ends of a TCP connection on this machine, which are closed
// when the test ends. The far end is the one that connected; it has a deadline of
// Patience.
func Pair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		c.Close()
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(Patience))
	t.Cleanup(func() { c.Close(); s.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

// Log is a log that can be read while it is written. The zero value is empty.
type Log struct {
	mu struct {
		sync.Mutex
		text bytes.Buffer
	}
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.text.Write(p)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.text.String()
}
