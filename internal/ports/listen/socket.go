// Package listen holds the sockets that clients connect to. A socket knows its
// address and nothing of the configuration: what is spoken on it is decided by
// who is handed its connections.
//
// Open binds an address; Serve accepts connections; Drain closes the socket
// and lets its connections end. A socket that runs out of file descriptors
// continues with its connections, logs that, and accepts new ones when
// descriptors are available.
//
// socket.go contains TCP sockets, queue.go the handling of clients in the system's
// queue when one closes, quic.go QUIC sockets, conns.go the connections of either,
// limit.go their limits, packets.go the UDP sockets under QUIC and under UDP proxies,
// and trouble.go the log of errors.
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

	"headgate/internal/netconn"
)

// Accept makes a Conn of an accepted connection. It must not wait. Nil means that
// the connection was refused and closed. waited means that it may have been in the
// system's queue while the limit was reached, and that its client may have left
// since.
type Accept func(nc net.Conn, waited bool) Conn

// Socket is an open listening socket for connections of TCP.
type Socket struct {
	conns
	file netconn.Listening

	deferred  atomic.Bool // silent clients are not accepted
	accepting sync.WaitGroup
	before    atomic.Uint64 // accepted before the socket started to drain
	hasty     atomic.Bool   // it closes at once, and waits for no handshakes
	released  chan struct{} // closed when the address is free again
	serving   atomic.Bool
}

// Open binds an address and lets clients queue. 0.0.0.0 means all IPv4
// addresses, [::] all of both families. The error wraps that of the system:
// errors.Is(err, syscall.EADDRINUSE) identifies an address in use.
//
// beside are sockets of this process that overlap with the address and will be closed
// soon, such as 127.0.0.1:80 for 0.0.0.0:80. The system refuses that unless both sides
// allow it, so it is allowed while the new socket is bound: a foreign process on the
// address is noticed as ever.
//
// The connections count in share, which ends with the socket; nil is no bound.
func Open(address netip.AddrPort, beside []*Socket, share *Share, log *slog.Logger) (*Socket, error) {
	var files []syscall.Conn
	for _, s := range beside {
		files = append(files, s.file)
	}
	return open(address, files, share, log)
}

// Listener is Open for what serves its connections by itself. beside is nil
// or one that this func has returned. The error is the system's alone.
func Listener(address netip.AddrPort, beside net.Listener) (net.Listener, error) {
	var files []syscall.Conn
	if l, ok := beside.(*net.TCPListener); ok {
		files = append(files, l)
	}
	l, err := bind(address, files)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func open(address netip.AddrPort, beside []syscall.Conn, share *Share, log *slog.Logger) (*Socket, error) {
	l, err := bind(address, beside)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	s := &Socket{file: netconn.NewListener(l), released: make(chan struct{})}
	s.init(address, share, log)
	return s, nil
}

// bind binds an address, together with others that allow it for that time.
func bind(address netip.AddrPort, beside []syscall.Conn) (*net.TCPListener, error) {
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
	// Multipath sockets, Go's default, support fewer options: no packet
	// filter.
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

// network returns the network for Listen: an IPv4 address must not accept
// IPv6, and [::] accepts both.
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

// Bound returns the address that the system assigned, which differs if the
// port number was left open.
func (s *Socket) Bound() netip.AddrPort { return s.file.Addr().(*net.TCPAddr).AddrPort() }

// Serve starts to accept connections, in the background.
func (s *Socket) Serve(accept Accept) {
	s.serving.Store(true)
	s.accepting.Go(func() { s.loop(accept) })
}

// queueCheck is the time after the limit was reached in which connections count as
// ones that have waited.
const queueCheck = time.Second

// loop accepts connections until the socket is closed.
func (s *Socket) loop(accept Accept) {
	var trouble trouble
	var queue queue
	var crowd crowd
	var crowded time.Time // when the limit was last reached
	for {
		if s.awaitRoom(&crowd) {
			crowded = time.Now()
		} else {
			crowd.forget()
		}
		nc, err := s.file.Accept()
		if err != nil {
			switch {
			case errors.Is(err, net.ErrClosed), s.hasLeft():
				return
			case !s.Draining():
				trouble.note(s, err)
			case !queue.goesOn(s, err):
				return
			}
			continue
		}
		trouble.over()
		s.accepted.Add(1)
		waited := !crowded.IsZero() && time.Since(crowded) < queueCheck
		if c := accept(nc, waited); c != nil {
			s.share.add()
			s.start(c)
		}
	}
}

// awaitRoom waits until another connection is allowed, and reports whether it had
// to. A draining socket empties its queue even over the limit.
func (s *Socket) awaitRoom(crowd *crowd) (waited bool) {
	for {
		news, ok := s.share.room()
		if ok || s.Draining() {
			return waited
		}
		waited = true
		s.awaitYield(crowd, news)
	}
}

// Released is closed when the address is free for another socket: soon after
// Drain or Close starts, long before the last connection has ended.
func (s *Socket) Released() <-chan struct{} { return s.released }

// Close closes a socket that was opened and never served, or together with all
// its connections. To close again does no harm.
func (s *Socket) Close() { s.Drain(0) }

// Drain closes the socket and drains its connections. It returns when all have
// ended, or cuts them at the deadline. Clients in the system's queue are served
// too. It returns how many connections were cut.
func (s *Socket) Drain(within time.Duration) (cut int) {
	s.stop(within <= 0)
	late := time.NewTimer(within)
	defer late.Stop()
	none := func() bool { return len(s.mu.open) == 0 }
	if within <= 0 || !s.await(late.C, none) {
		cut = s.Cut()
		s.await(nil, none)
	}
	s.share.Leave()
	return cut
}

// stop notifies the open connections, empties the queue and closes the socket. Only
// the first call has an effect. A hasty one does not wait for silent clients.
func (s *Socket) stop(hasty bool) {
	if hasty {
		s.hasty.Store(true)
	}
	s.mu.Lock()
	left := s.mu.left
	if s.mu.draining && !left {
		s.mu.Unlock()
		<-s.released
		return
	}
	s.mu.draining, s.mu.left = true, false
	s.before.Store(s.accepted.Load())
	s.drainOpenLocked()
	s.mu.Unlock()
	s.share.recheck()
	if s.serving.Load() && !left { // the queue of a socket that was left is another process's
		s.emptyQueue()
	}
	s.file.Close()
	s.accepting.Wait()
	close(s.released)
}
