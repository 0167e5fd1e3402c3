package netconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// sockets returns a socket that was accepted, and the other end of its connection.
func sockets(t testing.TB) (*netconn.Socket, *net.TCPConn) {
	t.Helper()
	l := listening(t)
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return near.(*netconn.Socket), far.(*net.TCPConn)
}

// listening returns a listener that accepts sockets.
func listening(t testing.TB) netconn.Listening {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := netconn.NewListener(l.(*net.TCPListener))
	t.Cleanup(func() { n.Close() })
	return n
}

// option returns an option of a socket.
func option(t *testing.T, nc syscall.Conn, level, option int) (value int) {
	t.Helper()
	raw, err := nc.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, option) }), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSocketIsLikeATCPConn(t *testing.T) {
	near, far := sockets(t)
	if got, want := near.RemoteAddr().String(), far.LocalAddr().String(); got != want {
		t.Errorf("its remote address is %s, want %s", got, want)
	}
	if got, want := near.LocalAddr().String(), far.RemoteAddr().String(); got != want {
		t.Errorf("its local address is %s, want %s", got, want)
	}
	if option(t, near, syscall.IPPROTO_TCP, syscall.TCP_NODELAY) == 0 {
		t.Error("it does not send at once")
	}
	io.WriteString(far, "hello")
	p := make([]byte, 10)
	if n, err := near.Read(p); string(p[:n]) != "hello" || err != nil {
		t.Errorf("read %q, %v", p[:n], err)
	}
	near.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := near.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if _, err := near.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("once more: %v", err)
	}
	near.SetReadDeadline(time.Time{})
	go io.WriteString(far, "again")
	if n, err := near.Read(p); string(p[:n]) != "again" || err != nil {
		t.Errorf("read %q, %v", p[:n], err)
	}
	if n, err := near.Write([]byte("answer")); n != 6 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if err := near.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(far); string(b) != "answer" || err != nil {
		t.Errorf("the peer read %q, %v", b, err)
	}
	far.Close()
	if _, err := near.Read(p); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"Close": near.Close(), "CloseWrite": near.CloseWrite(), "SetLinger": near.SetLinger(0), "SetDeadline": near.SetDeadline(time.Time{}),
		"Read": second(near.Read(p)), "Write": second(near.Write(p)),
	} {
		if !errors.Is(err, net.ErrClosed) && name != "SetDeadline" {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

func second(_ int, err error) error { return err }

// A deadline that was set before anybody waits holds when somebody does.
func TestSocketKeepsADeadlineForItsFirstWait(t *testing.T) {
	near, _ := sockets(t)
	near.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	near.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := near.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Close comes back when nobody uses the descriptor any more, whether the poller knows
// it or not, and ends all waits.
func TestSocketIsClosedWhileItIsUsed(t *testing.T) {
	for range 300 {
		near, far := sockets(t)
		raw, _ := near.SyscallConn()
		var users sync.WaitGroup
		began := make(chan struct{}, 3)
		users.Go(func() { // waits
			began <- struct{}{}
			if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a read came back with %v", err)
			}
		})
		users.Go(func() { // waits, after a while
			began <- struct{}{}
			for {
				if _, err := near.Write(make([]byte, 64<<10)); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("a write came back with %v", err)
					}
					return
				}
			}
		})
		held, release := make(chan struct{}), make(chan struct{})
		users.Go(func() {
			raw.Control(func(uintptr) { close(held); <-release })
		})
		<-began
		<-held
		closed := make(chan error, 1)
		go func() { closed <- near.Close() }()
		<-began
		select {
		case <-closed:
			t.Fatal("closed while the descriptor was used")
		default:
		}
		close(release)
		users.Wait()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		far.Close()
	}
}

func TestListenerEndsByDeadlineAndByClose(t *testing.T) {
	l := listening(t)
	l.SetDeadline(time.Now().Add(time.Millisecond))
	if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	l.SetDeadline(time.Time{})
	failed := make(chan error)
	go func() {
		_, err := l.Accept()
		failed <- err
	}()
	l.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the address is not free: %v", err)
	}
}

// Without the descriptor, a listener is what it was.
func TestListenerThatCannotBeTakenOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if got := netconn.NewListener(l.(*net.TCPListener)); got != l {
		t.Errorf("got %T", got)
	}
}

// A server that is silent for a while is asked whether it is still there.
func TestRelayAsksForASilentServer(t *testing.T) {
	toServer, server := sockets(t)
	near, client := sockets(t)
	r := &netconn.Relay{Client: netconn.New(near), Server: netconn.New(toServer)}
	end := make(chan error, 1)
	go r.Start(func(err error) { end <- err })
	testhouse.Eventually(t, "the server is asked", func() bool { return option(t, toServer, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 1 })
	client.Close()
	server.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// On all addresses, each connection has its own.
func TestListenerOnAllAddresses(t *testing.T) {
	tcp, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	l := netconn.NewListener(tcp.(*net.TCPListener))
	defer l.Close()
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr().(*net.TCPAddr).AddrPort().Port())
	far, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	remote, local := near.(*netconn.Socket).AddrPorts()
	if want := far.LocalAddr().(*net.TCPAddr).AddrPort(); remote != want || local != at {
		t.Errorf("the ends are %v and %v, want %v and %v", remote, local, want, at)
	}
}

func TestDial(t *testing.T) {
	l := listening(t)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	near, err := netconn.Dial(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if near.LocalAddr().String() != far.RemoteAddr().String() || near.RemoteAddr().String() != at.String() {
		t.Errorf("from %v to %v, want from %v to %v", near.LocalAddr(), near.RemoteAddr(), far.RemoteAddr(), at)
	}
	if option(t, near.(syscall.Conn), syscall.IPPROTO_TCP, syscall.TCP_NODELAY) == 0 {
		t.Error("it does not send at once")
	}
	keep := net.KeepAliveConfig{Enable: true, Idle: 61 * time.Second, Interval: 16 * time.Second, Count: 5}
	if err := near.(*netconn.Socket).SetKeepAliveConfig(keep); err != nil {
		t.Error(err)
	}
	for _, o := range [][3]int{
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 61},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 16}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 5},
	} {
		if got := option(t, near.(syscall.Conn), o[0], o[1]); got != o[2] {
			t.Errorf("option %d is %d, want %d", o[1], got, o[2])
		}
	}
	io.WriteString(near, "x")
	if n, err := far.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
}

func TestDialThatComesToNothing(t *testing.T) {
	l := listening(t)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	l.Close()
	var op *net.OpError
	_, err := netconn.Dial(t.Context(), at)
	if want := "dial tcp " + at.String() + ": connect: connection refused"; !errors.As(err, &op) || !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want {
		t.Errorf("refused: got %v, want %s", err, want)
	}
	full, fill := fullQueue(t)
	defer fill()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var late interface{ Timeout() bool }
	if _, err = netconn.Dial(ctx, full); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("no answer: got %v, want a time-out", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err = netconn.Dial(ctx, full); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: got %v", err)
	}
	if _, err = netconn.Dial(ctx, full); !errors.Is(err, context.Canceled) {
		t.Errorf("given up before: got %v", err)
	}
}

// fullQueue returns an address that does not answer: there is no room in its queue.
func fullQueue(t *testing.T) (netip.AddrPort, func()) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(sa.(*syscall.SockaddrInet4).Port))
	var queued []net.Conn
	for {
		nc, err := net.DialTimeout("tcp", at.String(), 100*time.Millisecond)
		if err != nil {
			break
		}
		queued = append(queued, nc)
	}
	return at, func() {
		for _, nc := range queued {
			nc.Close()
		}
		syscall.Close(fd)
	}
}

// socketPair is pair with a connection of our own.
var socketPair = func(t testing.TB) (*netconn.Conn, *net.TCPConn) {
	near, far := sockets(t)
	c := netconn.New(near)
	c.SetReadWait(patience)
	c.SetWriteWait(patience)
	return c, far
}
