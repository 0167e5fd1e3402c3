package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// gate is a listener that accepts nothing before it is opened.
type gate struct {
	net.Listener
	begin  <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

// gated returns a listener that accepts nothing before begin is closed; nil is at once.
func gated(l net.Listener, begin <-chan struct{}) net.Listener {
	if begin == nil {
		return l
	}
	return &gate{Listener: l, begin: begin, closed: make(chan struct{})}
}

// ungated returns the listener inside a gate.
func ungated(l net.Listener) net.Listener {
	if g, ok := l.(*gate); ok {
		return g.Listener
	}
	return l
}

// Accept returns the next connection.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case <-g.begin:
		return g.Listener.Accept()
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// File returns the address that is served and a duplicate of its socket, for another
// process; nil if there is none.
func (s *Server) File() (netip.AddrPort, *os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open == nil {
		return netip.AddrPort{}, nil, nil
	}
	l, ok := ungated(s.mu.open.socket).(*net.TCPListener)
	if !ok {
		return netip.AddrPort{}, nil, fmt.Errorf("the listener at %s cannot be handed over", s.mu.open.address)
	}
	f, err := l.File()
	return s.mu.open.address, f, err
}

// Leave stops accepting connections, without a change to the socket, which another
// process has, too. Requests under way get a short time to end, in the background.
func (s *Server) Leave() {
	s.mu.Lock()
	old := s.mu.open
	s.mu.open, s.mu.left = nil, old
	s.waitLocked(netip.AddrPort{}, 0)
	s.mu.Unlock()
	if old == nil {
		return
	}
	leaveServer(old.server, old.socket)
	s.closing.Go(func() {
		time.Sleep(leaveGrace)
		old.close()
	})
}

// leaveGrace is how long requests may take to come on connections that were accepted when
// the listener was left. A server of net/http that is being shut down closes those without
// a response.
const leaveGrace = time.Second

// leaveServer closes the listener of a server. Connections that are open get the response
// to their next request.
func leaveServer(s *http.Server, l net.Listener) {
	l.Close()
	s.SetKeepAlivesEnabled(false)
}

// Wait returns when the requests have ended that were under way at Leave.
func (s *Server) Wait() { s.closing.Wait() }

// Rejoin serves again after Leave, with the duplicate that File has returned, and closes
// that.
func (s *Server) Rejoin(f *os.File) error {
	defer f.Close()
	socket, err := net.FileListener(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.mu.left
	if left == nil || s.mu.closed {
		socket.Close()
		return nil
	}
	s.mu.left = nil
	s.serveLocked(s.newListener(left.address, left.secret != nil, socket))
	return nil
}

// InheritSocket serves the admin socket at a path that another process has opened, and
// closes f. It is otherwise like OpenSocket.
func InheritSocket(path string, f *os.File, o Options) (*Socket, error) {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("use the inherited admin socket: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("use the inherited admin socket: %s is no Unix socket", l.Addr())
	}
	u.SetUnlinkOnClose(false)
	return serveSocket(path, u, o), nil
}

// File returns a duplicate of the socket, for another process; nil if there is none.
func (s *Socket) File() (*os.File, error) {
	if s == nil {
		return nil, nil
	}
	return s.listener.File()
}

// Leave stops accepting connections and leaves the socket in its place, as another process
// has it, too. Requests under way get a short time to end, in the background.
func (s *Socket) Leave() {
	if s == nil {
		return
	}
	leaveServer(s.server, s.accepts)
	s.leaving.Go(func() {
		time.Sleep(leaveGrace)
		s.end()
	})
}

// Wait returns when the requests have ended that were under way at Leave.
func (s *Socket) Wait() {
	if s != nil {
		s.leaving.Wait()
	}
}
