package ports

import (
	"errors"
	"fmt"
	"os"

	"headgate/internal/plan"
	"headgate/internal/ports/generations"
	"headgate/internal/ports/listen"
)

// Inheritance is what a process gets from the one that it replaces, as far as ports go.
type Inheritance interface {
	// TakeFile returns the descriptor with a name, once; nil if there is none.
	TakeFile(name string) *os.File
}

// Activated has the sockets that a service manager has opened for ports.
type Activated interface {
	// TakeSocket returns the socket for the port with a name, once; nil if there is none. at
	// is what the socket must be bound to: tcp/ or udp/ and an address.
	TakeSocket(port, at string) *os.File
}

// noInheritance is that of a process which replaces none.
type noInheritance struct{}

func (noInheritance) TakeFile(string) *os.File { return nil }

// TakeSocket is that of Activated.
func (noInheritance) TakeSocket(string, string) *os.File { return nil }

// takeSocket returns the open socket of a listener in a plan: that of the process which is
// replaced, or one that the service manager has opened; nil if there is none.
func (s *Set) takeSocket(l *listener, p *plan.Plan) *os.File {
	name := l.key.fileName()
	if f := s.inherit.TakeFile(name); f != nil {
		return f
	}
	if port := l.key.in(p); port != nil {
		return s.activated.TakeSocket(port.Name(), name)
	}
	return nil
}

// relayPrefix goes before the name of a socket of QUIC, in the name of the relay to the
// process that is replaced.
const relayPrefix = "relay/"

// fileName returns the name under which the descriptor of a socket is handed over. QUIC
// and UDP proxies have the same: a port may become the other.
func (k key) fileName() string {
	if k.kind == tcpKind {
		return "tcp/" + k.address.String()
	}
	return k.String()
}

// shared is a socket that another process has, too.
type shared struct {
	*listener
	relay *os.File // our end, of QUIC
}

// Freeze returns duplicates of the descriptors of all open sockets, by name, for a process
// that replaces this one. From then on no socket is opened or closed, until Thaw is
// called. The caller closes the duplicates.
func (s *Set) Freeze() (files map[string]*os.File, err error) {
	s.mu.Lock() // until Thaw
	if s.mu.closed {
		s.mu.Unlock()
		return nil, errors.New("the ports are being closed")
	}
	files = map[string]*os.File{}
	for k, l := range s.mu.open {
		if err = s.shareLocked(k, l, files); err != nil {
			err = fmt.Errorf("duplicate the socket of port %s: %w", l.name(), err)
			break
		}
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		s.Thaw()
		return nil, err
	}
	return files, nil
}

func (s *Set) shareLocked(k key, l *listener, files map[string]*os.File) error {
	f, err := l.socket.file()
	if err != nil {
		return err
	}
	files[k.fileName()] = f
	sh := shared{listener: l}
	if k.kind == quicKind {
		if sh.relay, files[relayPrefix+k.fileName()], err = generations.Relay(); err != nil {
			delete(files, relayPrefix+k.fileName())
			return err
		}
	}
	s.mu.shared = append(s.mu.shared, sh)
	return nil
}

// Leave stops accepting connections on the sockets whose duplicates Freeze has returned,
// and drains the open ones without interruption. It returns when no more connections are
// accepted. Thaw reverts it.
func (s *Set) Leave() {
	s.mu.left = true
	for _, sh := range s.mu.shared {
		if err := sh.socket.leave(sh.relay); err != nil {
			s.log.Warn("connections of a port are lost", "port", sh.name(), "error", err)
		}
	}
}

// Thaw reverts Freeze, and Leave if that was called: connections are accepted again.
func (s *Set) Thaw() {
	for _, sh := range s.mu.shared {
		if s.mu.left {
			sh.socket.rejoin()
		}
		if sh.relay != nil {
			sh.relay.Close()
		}
	}
	s.mu.shared, s.mu.left = nil, false
	s.mu.Unlock()
}

// End closes the sockets that were left with what is still open on them, instead of Thaw,
// and returns how many connections were cut.
func (s *Set) End() (cut int) {
	for _, l := range s.listeners() {
		if l.key.kind != udpKind {
			cut += l.Cut()
		}
		l.Close()
	}
	return cut
}

// Connections returns how many connections are open or being opened, those of sockets that
// drain among them. Sessions of UDP proxies are not counted.
func (s *Set) Connections() (n int) {
	for _, l := range s.listeners() {
		if q, ok := l.socket.(*quicSocket); ok {
			n += q.Unfinished()
		} else if l.key.kind != udpKind {
			n += l.Len()
		}
	}
	return n
}

// Start accepts connections, and what else clients send, on the sockets of a set that was
// made with Hold.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held = false
	for _, l := range s.mu.open {
		s.serve(l)
	}
}

func (t *tcpSocket) file() (*os.File, error) { return t.File() }

func (t *tcpSocket) leave(*os.File) error {
	t.Leave()
	return nil
}

func (t *tcpSocket) rejoin() { t.Rejoin(t.accept) }

func (q *quicSocket) file() (*os.File, error) { return q.File() }

func (q *quicSocket) leave(relay *os.File) error { return q.Leave(relay) }

func (q *quicSocket) rejoin() { q.Rejoin() }

func (u *udpSocket) file() (*os.File, error) { return u.Conn().File() }

func (u *udpSocket) leave(*os.File) error {
	u.Pause()
	return nil
}

func (u *udpSocket) rejoin() { u.Table.Serve() }

// bindOrInherit returns the socket of a port of TCP: the inherited one, if there is one.
func (s *Set) bindOrInherit(l *listener, p *plan.Plan, beside []*listen.Socket) (*listen.Socket, error) {
	if f := s.takeSocket(l, p); f != nil {
		return listen.Inherit(l.key.address, f, l.share, s.log)
	}
	return s.bind(l.key.address, beside, l.share, s.log)
}
