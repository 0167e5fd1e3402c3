// Package listen holds the sockets that clients connect to. A socket knows its
// address and nothing of the configuration: what is spoken on it is decided by
// who is handed its connections.
//
// Open binds an address; Serve takes connections; Drain closes the socket and
// lets its connections end. A socket that runs out of file descriptors goes on
// with the connections it has, says so, and takes new ones when there is room.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
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
	most      atomic.Int64 // open connections at most; 0 is no bound

	mu struct {
		sync.Mutex
		conns    map[Conn]struct{}
		room     chan struct{} // closed when a connection ended while full; nil if nobody waits
		empty    chan struct{} // closed when draining and no connection is left
		draining bool
		serving  bool
	}
}

// Open binds an address and lets clients queue. 0.0.0.0 stands for all IPv4
// addresses, [::] for all of both families. The error wraps that of the system:
// errors.Is(err, syscall.EADDRINUSE) tells a busy address.
func Open(address netip.AddrPort, log *slog.Logger) (*Socket, error) {
	return open(address, log, false)
}

// OpenBeside is Open for an address that overlaps with sockets of this process
// that will be closed soon, such as 0.0.0.0:80 beside 127.0.0.1:80. The system
// refuses that unless both sides allow it, so it is allowed while the new
// socket is bound and never else: a foreign process on the address is always
// noticed.
func OpenBeside(address netip.AddrPort, beside []*Socket, log *slog.Logger) (*Socket, error) {
	for _, s := range beside {
		s.share(true)
		defer s.share(false)
	}
	s, err := open(address, log, true)
	if err == nil {
		s.share(false)
	}
	return s, err
}

func open(address netip.AddrPort, log *slog.Logger, shared bool) (*Socket, error) {
	lc := net.ListenConfig{
		KeepAlive: -1, // set once on the listening socket, inherited by all others
		Control: func(_, _ string, raw syscall.RawConn) error {
			return control(raw, shared)
		},
	}
	l, err := lc.Listen(context.Background(), network(address), address.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, cause(err))
	}
	s := &Socket{address: address, file: l.(*net.TCPListener), log: log}
	s.mu.conns = map[Conn]struct{}{}
	return s, nil
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

// queueTime is how long a queue that is being emptied must be quiet: clients
// whose handshake is under way may still come into it.
const queueTime = 20 * time.Millisecond

// queueLooks bounds how often a queue is looked at again, where new clients
// cannot be kept out of it: others would keep the socket open by coming.
const queueLooks = 10

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
func (s *Socket) SetMost(n int) { s.most.Store(int64(n)) }

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
	var before uint64 // accepted when the last look at the queue began
	looks := 0
	for {
		s.awaitRoom()
		nc, err := s.file.Accept()
		if err != nil {
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case s.isDraining():
				now := s.accepted.Load()
				if looks++; now == before || looks == queueLooks {
					return // nobody came for a while: the queue is empty
				}
				before = now
				s.file.SetDeadline(time.Now().Add(queueTime))
			default:
				trouble.tell(s, err)
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

func (s *Socket) run(c Conn) {
	defer s.remove(c)
	c.Serve()
}

func (s *Socket) remove(c Conn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	if s.mu.room != nil {
		close(s.mu.room)
		s.mu.room = nil
	}
	if len(s.mu.conns) == 0 && s.mu.empty != nil {
		close(s.mu.empty)
		s.mu.empty = nil
	}
	s.mu.Unlock()
}

// awaitRoom waits until there may be another connection.
func (s *Socket) awaitRoom() {
	for {
		most := s.most.Load()
		if most <= 0 {
			return
		}
		s.mu.Lock()
		if int64(len(s.mu.conns)) < most || s.mu.draining {
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

// Close closes a socket that was opened and never served, or together with all
// its connections.
func (s *Socket) Close() { s.Drain(0) }

// Drain closes the socket and tells its connections to end. It returns when all
// have, or cuts them when the time is over. Clients that wait in the system's
// queue are served too.
func (s *Socket) Drain(within time.Duration) {
	empty := s.beginDrain()
	if within > 0 {
		select {
		case <-empty:
			return
		case <-time.After(within):
		}
	}
	s.mu.Lock()
	for c := range s.mu.conns {
		c.Close()
	}
	s.mu.Unlock()
	<-empty
}

// beginDrain stops taking connections and tells the open ones. The channel is
// closed when none is left.
func (s *Socket) beginDrain() <-chan struct{} {
	s.mu.Lock()
	s.mu.draining = true
	serving := s.mu.serving
	if s.mu.room != nil {
		close(s.mu.room)
		s.mu.room = nil
	}
	s.mu.Unlock()
	if serving {
		s.emptyQueue()
	}
	s.file.Close()
	s.accepting.Wait()

	s.mu.Lock()
	defer s.mu.Unlock()
	empty := make(chan struct{})
	if len(s.mu.conns) == 0 {
		close(empty)
		return empty
	}
	s.mu.empty = empty
	for c := range s.mu.conns {
		c.Drain()
	}
	return empty
}
