package listen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func TestMain(m *testing.M) {
	if isChild() {
		runChild()
		return
	}
	goleak.VerifyTestMain(m)
}

// echo is a connection that sends each line back.
type echo struct {
	net.Conn
	draining atomic.Bool
}

// Serve answers lines until the client leaves or the connection drains.
func (e *echo) Serve() (park func(resume func()) bool) {
	defer e.Conn.Close()
	r := bufio.NewReader(e.Conn)
	for last := false; !last; {
		last = e.draining.Load()
		line, err := r.ReadString('\n')
		if err != nil {
			return nil
		}
		if _, err := io.WriteString(e.Conn, line); err != nil {
			return nil
		}
	}
	return nil
}

// Drain lets a line that is on its way be answered.
func (e *echo) Drain() {
	e.draining.Store(true)
	e.SetReadDeadline(time.Now().Add(time.Second))
}

// stubborn is an echo that does not drain.
type stubborn struct{ echo }

func (s *stubborn) Drain() {}

func serveEcho(nc net.Conn, _ bool) Conn { return &echo{Conn: nc} }

func listenAt(t *testing.T, address netip.AddrPort) *Socket {
	t.Helper()
	s, err := Open(address, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// bound sets how many connections a socket may have.
func bound(s *Socket, n int) { s.share.limit.Divide(0, map[*Share]int{s.share: n}) }

func dial(t *testing.T, s *Socket) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", s.Bound().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// echoLine sends a line and returns the error if it does not come back.
func echoLine(c net.Conn) error {
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "hello\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

func TestABusyAddressIsToldAsSuch(t *testing.T) {
	s := listenAt(t, anyPort)
	_, err := Open(s.Bound(), nil, nil, slog.New(slog.DiscardHandler))
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.HasPrefix(err.Error(), "open "+s.Bound().String()+": ") {
		t.Errorf("got %v", err)
	}
}

func TestDrainServesWhoIsThere(t *testing.T) {
	s := listenAt(t, anyPort)
	s.Serve(serveEcho)
	c := dial(t, s)
	if err := echoLine(c); err != nil {
		t.Fatal(err)
	}
	if n, all := s.Len(), s.Accepted(); n != 1 || all != 1 {
		t.Errorf("%d open of %d, want 1 of 1", n, all)
	}
	done := make(chan int)
	go func() { done <- s.Drain(patience) }()
	<-s.Released()
	if c, err := net.Dial("tcp", s.Bound().String()); err == nil {
		c.Close()
		t.Error("the address still takes connections")
	}
	if err := echoLine(c); err != nil {
		t.Errorf("the open connection was not served to its end: %v", err)
	}
	if cut := <-done; cut != 0 {
		t.Errorf("%d connections were cut", cut)
	}
}

func TestDrainCutsWhatHangs(t *testing.T) {
	s := listenAt(t, anyPort)
	s.Serve(func(nc net.Conn, _ bool) Conn { return &stubborn{echo{Conn: nc}} })
	c := dial(t, s)
	if err := echoLine(c); err != nil {
		t.Fatal(err)
	}
	if cut := s.Drain(50 * time.Millisecond); cut != 1 {
		t.Errorf("%d connections were cut, want 1", cut)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
}

func TestDrainAndCloseAtOnce(t *testing.T) {
	s := listenAt(t, anyPort)
	s.Serve(func(nc net.Conn, _ bool) Conn { return &stubborn{echo{Conn: nc}} })
	if err := echoLine(dial(t, s)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { s.Drain(patience) })
	<-s.Released()
	for range 3 {
		all.Go(s.Close)
	}
	all.Wait()
	s.Close()
}

func TestASocketThatNeverServedCloses(t *testing.T) {
	s := listenAt(t, anyPort)
	s.Close()
	listenAt(t, s.Bound())
}

func TestWhoWaitsInTheQueueIsServed(t *testing.T) {
	s := listenAt(t, anyPort)
	// A bound of one keeps all others in the queue.
	bound(s, 1)
	s.Serve(serveEcho)
	const clients = 50
	answers := make(chan error, clients)
	var connected sync.WaitGroup
	for range clients {
		connected.Add(1)
		go func() {
			c, err := net.DialTimeout("tcp", s.Bound().String(), patience)
			connected.Done()
			if err == nil {
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				err = echoLine(c)
				io.Copy(io.Discard, c)
			}
			answers <- err
		}()
	}
	connected.Wait()
	if n := s.Accepted(); n > 2 {
		t.Fatalf("%d were accepted, the test wants them in the queue", n)
	}
	s.Drain(patience)
	for range clients {
		if err := <-answers; err != nil {
			t.Errorf("a client that was in the queue: %v", err)
		}
	}
}

func TestNobodyIsResetWhileSocketsCloseAndOpen(t *testing.T) {
	s := listenAt(t, anyPort)
	address := s.Bound()
	s.Serve(serveEcho)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var served, lost atomic.Int64
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.DialTimeout("tcp", address.String(), patience)
				if err != nil {
					continue // refused while nobody listens
				}
				c.SetDeadline(time.Now().Add(patience))
				if err := echoLine(c); err != nil {
					lost.Add(1)
					t.Errorf("connected and not served: %v", err)
				}
				served.Add(1)
				c.Close()
			}
		})
	}
	for range 8 {
		before := served.Load()
		testhouse.Eventually(t, "clients are served", func() bool { return served.Load() > before+20 })
		s.Drain(patience)
		s = listenAt(t, address)
		s.Serve(serveEcho)
	}
	close(stop)
	clients.Wait()
	t.Logf("%d of %d lost", lost.Load(), served.Load())
}

func TestTheBoundOfConnections(t *testing.T) {
	s := listenAt(t, anyPort)
	bound(s, 2)
	s.Serve(serveEcho)
	a, b, c, d := dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	for _, open := range []net.Conn{a, b} {
		if err := echoLine(open); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Accepted(); n > 3 {
		t.Fatalf("%d were accepted with a bound of 2", n)
	}
	a.Close()
	if err := echoLine(c); err != nil {
		t.Errorf("who waited was not served when there was room: %v", err)
	}
	bound(s, 3)
	if err := echoLine(d); err != nil {
		t.Errorf("who waited was not served when the bound was raised: %v", err)
	}
	if n := s.Len(); n != 3 {
		t.Errorf("%d connections are open, want 3", n)
	}
}

func TestAConnectionThatIsRefusedIsNotKept(t *testing.T) {
	s := listenAt(t, anyPort)
	s.Serve(func(nc net.Conn, _ bool) Conn {
		nc.Close()
		return nil
	})
	if err := echoLine(dial(t, s)); err == nil {
		t.Error("it was served")
	}
	if n := s.Len(); n != 0 {
		t.Errorf("%d connections are open, want none", n)
	}
}

func TestAddressesMoveToAllInterfacesAndBack(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	narrow := listenAt(t, anyPort)
	port := narrow.Bound().Port()
	narrow.Serve(serveEcho)
	for _, next := range []string{"0.0.0.0", "127.0.0.1", "[::]", "127.0.0.1", "[::]", "0.0.0.0", "127.0.0.1"} {
		before := narrow
		address := netip.MustParseAddrPort(fmt.Sprintf("%s:%d", next, port))
		wide, err := Open(address, []*Socket{before}, nil, log)
		if err != nil {
			t.Fatalf("from %v: %v", before.Address(), err)
		}
		wide.Serve(serveEcho)
		before.Drain(patience)
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), patience)
		if err != nil {
			t.Fatalf("%v: %v", address, err)
		}
		c.SetDeadline(time.Now().Add(patience))
		if err := echoLine(c); err != nil {
			t.Errorf("%v: %v", address, err)
		}
		c.Close()
		narrow = wide
	}
	// The permission to share lasts no longer than that.
	for _, foreign := range []string{"127.0.0.1", "0.0.0.0"} {
		s, err := Open(netip.MustParseAddrPort(fmt.Sprintf("%s:%d", foreign, port)), nil, nil, log)
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("somebody else got %s: %v", foreign, err)
			s.Close()
		}
	}
	narrow.Close()
}

func TestAForeignSocketIsNoticedBesideOurs(t *testing.T) {
	foreign, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip(err)
	}
	defer foreign.Close()
	port := foreign.Addr().(*net.TCPAddr).Port
	ours := listenAt(t, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
	wide, err := Open(netip.MustParseAddrPort(fmt.Sprintf("0.0.0.0:%d", port)), []*Socket{ours}, nil, slog.New(slog.DiscardHandler))
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want that it is in use", err)
		wide.Close()
	}
}
