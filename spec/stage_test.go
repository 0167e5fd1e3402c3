package spec

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// server is a server that a script plays: connections of the proxy come in, and
// the script reads and writes the one that was used last.
type server struct {
	t        *testing.T
	name     string
	listener net.Listener
	active   chan *peer // connections on which bytes have arrived
	known    []*peer    // those that were used
	current  *peer
	step     int
	loose    bool // requests come by HTTP/2: see loosely
}

func newServer(t *testing.T, name string) *server {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, name: name, listener: l, active: make(chan *peer, 16)}
	t.Cleanup(func() { l.Close() })
	go s.accept(l)
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

// accept takes connections and reports each when its first byte arrives.
func (s *server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.t.Cleanup(func() { c.Close() })
		go func() {
			p := &peer{t: s.t, who: s.name, conn: c, r: bufio.NewReader(c)}
			if _, err := p.r.Peek(1); err == nil {
				s.active <- p
			}
		}()
	}
}

// mustGet reads exactly want, on a new connection or on one used before: which of
// them depends on whether the proxy had it back when the request came.
func (s *server) mustGet(want []byte) {
	s.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if s.hasMore() {
			s.compare(want)
			return
		}
		select {
		case s.current = <-s.active:
			s.known = append(s.known, s.current)
			s.current.conn.SetDeadline(time.Now().Add(patience))
			s.compare(want)
			return
		case <-time.After(glance):
		}
	}
	s.t.Fatalf("step %d: %s got no request; want:\n%s", s.step, s.name, visible(want))
}

// glance is how long one connection is looked at before the other.
const glance = 5 * time.Millisecond

// hasMore reports whether bytes come soon on a connection used before, the last one
// first, and makes that the current one.
func (s *server) hasMore() bool {
	for i := len(s.known) - 1; i >= 0; i-- {
		p := s.known[i]
		p.conn.SetReadDeadline(time.Now().Add(glance))
		_, err := p.r.Peek(1)
		p.conn.SetReadDeadline(time.Now().Add(patience))
		if err == nil {
			s.current = p
			return true
		}
	}
	return false
}

// compare reads want from the connection at hand.
func (s *server) compare(want []byte) {
	s.t.Helper()
	s.current.step = s.step
	if s.loose {
		s.current.mustGetLoosely(want)
		return
	}
	s.current.mustGet(want)
}

func (s *server) send(b []byte) {
	s.t.Helper()
	if s.current == nil {
		s.t.Fatalf("%s cannot answer before it got a request", s.name)
	}
	s.current.send(b)
}

// end closes the connection of the last request.
func (s *server) end() {
	if s.current != nil {
		s.current.conn.Close()
		s.current = nil
	}
}

// mustBeQuiet fails if a request reaches the server before a moment that the
// script does not name.
func (s *server) mustBeQuiet(until time.Time) {
	s.t.Helper()
	if s.t.Failed() {
		return
	}
	select {
	case p := <-s.active:
		b, _ := p.r.Peek(p.r.Buffered())
		s.t.Errorf("%s got a request that it should not get:\n%s", s.name, visible(b))
	case <-time.After(time.Until(until)):
	}
	if s.current == nil {
		return
	}
	// What came meanwhile is there by now.
	s.current.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := s.current.r.Peek(1); err == nil {
		b, _ := s.current.r.Peek(s.current.r.Buffered())
		s.t.Errorf("%s got more than it should:\n%s", s.name, visible(b))
	}
}
