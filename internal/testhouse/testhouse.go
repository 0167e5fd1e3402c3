// Package testhouse holds what the tests of many packages need alike: connected
// sockets, servers of connections, free addresses, patience, a log that can be read while it is
// written, and a server for random lives of clients.
// Only tests import it.
package testhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come at once.
const Patience = time.Minute

// parts is the number of parts of a timeout that are waited for one after the other. If
// the machine, and the test with it, is suspended for minutes, that uses up only one of
// them.
const parts = 20

// Eventually waits until a condition holds, and fails the test after Patience. what
// describes the condition.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	left := Patience
	began := time.Now()
	// To look may cost more than what is waited for, so it looks less and less often.
	for pause := time.Millisecond; !holds(); pause = min(2*pause, 8*time.Millisecond) {
		if left <= 0 {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(pause)
		now := time.Now()
		left -= min(now.Sub(began), Patience/parts)
		began = now
	}
}

// Patient returns a context that ends after Patience, for operations that should be
// immediate. It survives a suspended machine. Cancel releases its resources.
func Patient(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	return patient(parent, Patience/parts)
}

// patient returns a context that ends after many parts of this length.
func patient(parent context.Context, part time.Duration) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	var mu sync.Mutex
	var timer *time.Timer
	left := parts
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(part, func() {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			end(context.DeadlineExceeded)
		} else if ctx.Err() == nil {
			timer.Reset(part)
		}
	})
	return ctx, func() {
		end(context.Canceled)
		timer.Stop()
	}
}

// Pause is the pause of a client that repeats requests while something else is
// tested. Without it, a few clients use the whole processor, and the test takes far
// longer.
func Pause() { time.Sleep(time.Millisecond) }

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

// Server runs a server on a free port of this machine, calls serve for each of its
// connections and closes it then. It returns the address. When the test ends, the
// connections are closed that are still open, and serve has returned for all.
func Server(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ServerOn(t, l, serve)
	return l.Addr().String()
}

// ServerOn is Server on a listener, which it closes when the test ends.
func ServerOn(t testing.TB, l net.Listener, serve func(net.Conn)) {
	var all sync.WaitGroup
	var open sync.Map
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			all.Go(func() {
				defer open.Delete(c)
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		for waiting := closedBy(&all); ; {
			open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
			select {
			case <-waiting:
				return
			case <-time.After(time.Millisecond): // one may just have been accepted
			}
		}
	})
}

// closedBy returns a channel that is closed when a group has ended.
func closedBy(all *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
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

// Ports returns port numbers that are free for TCP and UDP, on any address of the machine.
// No other test gets them before this one has ended, including tests in another package's
// process. They are below the system's ephemeral ports.
func Ports(t testing.TB, n int) []string {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		port, release, err := Port()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		all[i] = strconv.Itoa(port)
	}
	return all
}

// Addresses returns addresses on 127.0.0.1 with free Ports.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	all := make([]string, n)
	for i, port := range Ports(t, n) {
		all[i] = "127.0.0.1:" + port
	}
	return all
}

// Address is one of Addresses.
func Address(t testing.TB) string {
	t.Helper()
	return Addresses(t, 1)[0]
}

// Where Port looks.
const firstPort, ports = 12_000, 18_000

// Port is one of Ports, for callers without a test. Release releases it.
func Port() (port int, release func(), err error) {
	for range 10_000 {
		port := firstPort + rand.IntN(ports)
		release, ok := reserve(port)
		if ok && unused(port) {
			return port, release, nil
		}
		release()
	}
	return 0, nil, errors.New("no port is free")
}

// reserve reserves a port with a name in the abstract namespace, which ends with the
// process at the latest. Systems other than Linux have none: there nothing is reserved.
func reserve(port int) (release func(), ok bool) {
	if runtime.GOOS != "linux" {
		return func() {}, true
	}
	held, err := net.Listen("unix", fmt.Sprintf("@headgate-test-port-%d", port))
	if err != nil {
		return func() {}, false
	}
	return func() { held.Close() }, true
}

// unused reports whether a port can be listened on just now.
func unused(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	l.Close()
	c, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Serve serves a connection to its end, as a socket does: one that is parked is served
// again when there is something to do.
func Serve(c interface {
	Serve() (park func(resume func()) bool)
}) {
	for {
		park := c.Serve()
		if park == nil {
			return
		}
		resumed := make(chan struct{})
		if park(func() { close(resumed) }) {
			<-resumed
		}
	}
}

// FillUp writes to a connection whose far end reads nothing until not one more byte
// fits. The buffers get sizes that are fixed and small: otherwise the system would
// enlarge them a moment later.
func FillUp(near, far *net.TCPConn) {
	near.SetWriteBuffer(4 << 10)
	far.SetReadBuffer(4 << 10)
	defer near.SetWriteDeadline(time.Time{})
	for full := 0; full < 5; {
		near.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := near.Write(make([]byte, 1<<10)); n > 0 {
			full = 0
		} else if err != nil {
			full++
		}
	}
}
