package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"headgate/internal/netconn"
)

// leaver is a connection that can end in its own time when its socket is left to another
// process: unlike after Drain, an idle one stays until its client sends a request or its
// idle timeout is over.
type leaver interface{ Leave() }

// Leave notifies a connection that another process serves its clients from now
// on.
func Leave(c Conn) {
	if l, ok := c.(leaver); ok {
		l.Leave()
		return
	}
	c.Drain()
}

// leaveLocked notifies the open connections, and those that are still being
// accepted.
func (c *conns) leaveLocked() {
	c.mu.draining, c.mu.left = true, true
	for conn := range c.mu.open {
		Leave(conn)
	}
	c.newsLocked()
}

// Inherit returns the socket at an address that another process has handed over, which
// it closes. Options of the socket stay as they are.
func Inherit(address netip.AddrPort, f *os.File, share *Share, log *slog.Logger) (*Socket, error) {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("use the inherited socket of %s: %w", address, err)
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("use the inherited socket of %s: it does not listen on TCP", address)
	}
	s := &Socket{file: netconn.NewListener(t), released: make(chan struct{})}
	s.deferred.Store(s.isDeferred())
	s.init(address, share, log)
	return s, nil
}

// File returns a duplicate of the listening socket, for another process. Closing it does
// not affect the socket.
func (s *Socket) File() (*os.File, error) {
	if l, ok := s.file.(interface{ File() (*os.File, error) }); ok {
		return l.File()
	}
	return nil, errors.ErrUnsupported
}

// Leave leaves the socket to another process that shares it: this one accepts no more
// connections and drains the open ones without interruption. Nothing about the socket
// changes: its options, its address and the queue of clients are shared with the other
// process. It returns when no connection is being accepted. Rejoin reverts it.
func (s *Socket) Leave() {
	s.mu.Lock()
	s.leaveLocked()
	s.mu.Unlock()
	s.share.recheck()
	s.file.SetDeadline(time.Unix(1, 0)) // of Go's, not of the system's socket
	s.accepting.Wait()
}

// Rejoin accepts connections again after Leave. Connections that are draining end
// nevertheless.
func (s *Socket) Rejoin(accept Accept) {
	s.mu.Lock()
	s.mu.draining, s.mu.left = false, false
	s.mu.Unlock()
	s.file.SetDeadline(time.Time{})
	s.Serve(accept)
}

// hasLeft reports whether the socket is another process's.
func (c *conns) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.left
}

// InheritQUIC returns the socket of QUIC at an address that another process has handed
// over: its descriptor, and a relay for the datagrams of that process. It closes f. The
// relay is used when Serve is called, and may be nil.
func InheritQUIC(address netip.AddrPort, f, relay *os.File, share *Share, settings QUICSettings, log *slog.Logger) (*QUIC, error) {
	udp, err := InheritPackets(address, f)
	if err != nil {
		return nil, err
	}
	q, err := newQUIC(address, udp, share, settings, log)
	if err != nil {
		return nil, err
	}
	q.relay = relay
	return q, nil
}

// InheritPackets returns the socket of datagrams at an address that another process has
// handed over. It closes f.
func InheritPackets(address netip.AddrPort, f *os.File) (*net.UDPConn, error) {
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("use the inherited socket of %s (UDP): %w", address, err)
	}
	udp, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("use the inherited socket of %s (UDP): it is not one of UDP", address)
	}
	return udp, nil
}

// File returns a duplicate of the socket, for another process.
func (q *QUIC) File() (*os.File, error) { return q.udp.File() }

// Leave leaves the socket to another process that shares it: that process reads it, and
// sends datagrams for connections of this process through the relay, whose other end it
// has. New connections go to the other process, except those whose handshake is in
// progress. Open ones drain. Rejoin reverts it.
func (q *QUIC) Leave(relay *os.File) error {
	q.mu.Lock()
	q.leaveLocked()
	q.mu.Unlock()
	return q.shared.Leave(relay)
}

// Rejoin reads the socket and accepts connections again.
func (q *QUIC) Rejoin() {
	q.mu.Lock()
	q.mu.draining, q.mu.left = false, false
	q.newsLocked()
	q.mu.Unlock()
	q.shared.Rejoin()
}
