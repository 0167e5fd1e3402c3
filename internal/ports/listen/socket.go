// Package listen holds the sockets that clients connect to. A socket knows its
// address and nothing of the configuration: what is spoken on it is decided by
// who is handed its connections.
//
// Open binds an address; Serve takes connections; Drain closes the socket and
// lets its connections end. A socket that runs out of file descriptors goes on
// with the connections it has, says so, and takes new ones when there is room.
//
// socket.go holds sockets of TCP, queue.go what becomes of clients that still wait
// when one closes, quic.go those of QUIC, packets.go the UDP sockets under them and
// under UDP proxies, and trouble.go what is told of errors.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a connection as its socket sees it.
type Conn interface {
	// Serve serves the connection to its end and closes it.
	Serve()
	// Drain makes the connection end after the request at hand, or soon.
	Drain()
	// Close ends the connection at once.
	Close() error
}

// Accept makes a Conn of an accepted connection. It must not wait. Nil means
// that the connection was refused and closed.
type Accept func(net.Conn) Conn

// Socket is an open listening socket.
type Socket struct {
	// constant
	address netip.AddrPort
	file    *net.TCPListener
	log     *slog.Logger

	accepting sync.WaitGroup
	accepted  atomic.Uint64
	before    atomic.Uint64 // accepted when the socket began to drain
	released  chan struct{} // closed when the address is free again
	empty     chan struct{} // closed when, beyond that, no connection is left

	mu struct {
		sync.Mutex
		conns    map[Conn]struct{}
		most     int           // open connections at most; 0 is no bound
		room     chan struct{} // closed when there may be room; nil if nobody waits
		draining bool
		serving  bool
		closed   bool // the accept loop has ended
	}
}

// Open binds an address and lets clients queue. 0.0.0.0 stands for all IPv4
// addresses, [::] for all of both families. The error wraps that of the system:
// errors.Is(err, syscall.EADDRINUSE) tells a busy address.
func Open(address netip.AddrPort, log *slog.Logger) (*Socket, error) {
	return open(address, nil, log)
}

// OpenBeside is Open for an address that overlaps with sockets of this process
// that will be closed soon, such as 0.0.0.0:80 beside 127.0.0.1:80. The system
// refuses that unless both sides allow it, so it is allowed while the new
// socket is bound: a foreign process on the address is noticed as ever.
func OpenBeside(address netip.AddrPort, beside []*Socket, log *slog.Logger) (*Socket, error) {
	var files []*net.TCPListener
	for _, s := range beside {
		files = append(files, s.file)
	}
	return open(address, files, log)
}

// Listener is OpenBeside for what serves its connections by itself. beside is nil
// or one that this func has returned. The error is the system's alone.
func Listener(address netip.AddrPort, beside net.Listener) (net.Listener, error) {
	var files []*net.TCPListener
	if l, ok := beside.(*net.TCPListener); ok {
		files = append(files, l)
	}
	l, err := bind(address, files)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func open(address netip.AddrPort, beside []*net.TCPListener, log *slog.Logger) (*Socket, error) {
	l, err := bind(address, beside)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	s := &Socket{address: address, file: l, log: log, released: make(chan struct{}), empty: make(chan struct{})}
	s.mu.conns = map[Conn]struct{}{}
	return s, nil
}

// bind binds an address, beside others that allow it for as long as that takes.
func bind(address netip.AddrPort, beside []*net.TCPListener) (*net.TCPListener, error) {
	shared := len(beside) > 0
	for _, l := range beside {
		share(l, true)
		defer share(l, false)
	}
	lc := net.ListenConfig{
		KeepAlive: -1, // set once on the listening socket, inherited by all others
		Control: func(_, _ string, raw syscall.RawConn) error {
			return control(raw, shared)
		},
	}
	// Multipath sockets, Go's default, take fewer options: no packet filter.
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), network(address), address.String())
	if err != nil {
		return nil, cause(err)
	}
	if shared {
		share(l.(*net.TCPListener), false)
	}
	return l.(*net.TCPListener), nil
}

// network returns what Listen has to be asked for: an IPv4 address is not to
// take IPv6, and [::] takes both.
func network(address netip.AddrPort) string {
	switch addr := address.Addr(); {
	case addr.Is4():
		return "tcp4"
	case addr.IsUnspecified():
		return "tcp"
	}
	return "tcp6"
}

// cause returns the system's error without the words of package net around it.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Address returns what the socket is bound to.
func (s *Socket) Address() netip.AddrPort { return s.address }

// Bound returns the address the system gave, which differs where the port
// number was left open.
func (s *Socket) Bound() netip.AddrPort { return s.file.Addr().(*net.TCPAddr).AddrPort() }

// Accepted returns how many connections were taken.
func (s *Socket) Accepted() uint64 { return s.accepted.Load() }

// Len returns how many connections are open.
func (s *Socket) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.conns)
}

// SetMost bounds the number of open connections; more wait in the system's
// queue. 0 is no bound.
func (s *Socket) SetMost(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.most = n
	s.makeRoomLocked()
}

// Serve begins to take connections, in the background.
func (s *Socket) Serve(accept Accept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.serving = true
	s.accepting.Go(func() { s.loop(accept) })
}

// loop takes connections until the socket is closed.
func (s *Socket) loop(accept Accept) {
	var trouble trouble
	var queue queue
	for {
		s.awaitRoom()
		nc, err := s.file.Accept()
		if err != nil {
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case !s.isDraining():
				trouble.tell(s, err)
			case !queue.goesOn(s, err):
				return
			}
			continue
		}
		trouble.over()
		s.take(nc, accept)
	}
}

// take serves one connection.
func (s *Socket) take(nc net.Conn, accept Accept) {
	s.accepted.Add(1)
	c := accept(nc)
	if c == nil {
		return
	}
	s.mu.Lock()
	s.mu.conns[c] = struct{}{}
	draining := s.mu.draining
	s.mu.Unlock()
	go s.run(c)
	if draining {
		c.Drain()
	}
}

// run serves a connection. A broken invariant ends this connection and no other.
func (s *Socket) run(c Conn) {
	defer s.remove(c)
	defer func() {
		if v := recover(); v != nil {
			c.Close()
			s.log.Error("connection ended by a broken invariant", "address", s.address.String(), "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.Serve()
}

func (s *Socket) remove(c Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
	s.makeRoomLocked()
	s.endIfEmptyLocked()
}

// endIfEmptyLocked tells those who drain the socket when nothing is left of it.
func (s *Socket) endIfEmptyLocked() {
	if s.mu.closed && len(s.mu.conns) == 0 {
		close(s.empty)
	}
}

// makeRoomLocked lets the accept loop look again whether there is room.
func (s *Socket) makeRoomLocked() {
	if s.mu.room != nil {
		close(s.mu.room)
		s.mu.room = nil
	}
}

// awaitRoom waits until there may be another connection.
func (s *Socket) awaitRoom() {
	for {
		s.mu.Lock()
		if s.mu.most <= 0 || len(s.mu.conns) < s.mu.most || s.mu.draining {
			s.mu.Unlock()
			return
		}
		if s.mu.room == nil {
			s.mu.room = make(chan struct{})
		}
		room := s.mu.room
		s.mu.Unlock()
		<-room
	}
}

func (s *Socket) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.draining
}

// Released is closed when the address is free for another socket: soon after
// Drain or Close begins, long before the last connection has ended.
func (s *Socket) Released() <-chan struct{} { return s.released }

// Renew makes the open connections end soon; new ones are taken as before.
func (s *Socket) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.conns {
		c.Drain()
	}
}

// Close closes a socket that was opened and never served, or together with all
// its connections. To close again does no harm.
func (s *Socket) Close() { s.Drain(0) }

// Drain closes the socket and tells its connections to end. It returns when all
// have, or cuts them when the time is over. Clients that wait in the system's
// queue are served too. It returns how many connections were cut.
func (s *Socket) Drain(within time.Duration) int {
	s.beginDrain()
	if within > 0 {
		select {
		case <-s.empty:
			return 0
		case <-time.After(within):
		}
	}
	s.mu.Lock()
	cut := len(s.mu.conns)
	for c := range s.mu.conns {
		c.Close()
	}
	s.mu.Unlock()
	<-s.empty
	return cut
}

// beginDrain tells the open connections, empties the queue and closes the
// socket. Only the first call does.
func (s *Socket) beginDrain() {
	s.mu.Lock()
	if s.mu.draining {
		s.mu.Unlock()
		<-s.released
		return
	}
	s.mu.draining = true
	s.before.Store(s.accepted.Load())
	serving := s.mu.serving
	s.makeRoomLocked()
	for c := range s.mu.conns {
		c.Drain()
	}
	s.mu.Unlock()
	if serving {
		s.emptyQueue()
	}
	s.file.Close()
	s.accepting.Wait()
	close(s.released)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	s.endIfEmptyLocked()
}
