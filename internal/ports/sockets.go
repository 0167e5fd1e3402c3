package ports

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/front/h1"
	"headgate/internal/front/h2"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// Bind opens an address, beside sockets that will be closed soon.
type Bind func(address netip.AddrPort, beside []*listen.Socket, log *slog.Logger) (*listen.Socket, error)

// socket is an open listening socket and what is spoken on it.
type socket struct {
	*listen.Socket
	plain  speaker // without TLS
	secure speaker
	turn   chan struct{} // room for running handshakes
	since  time.Time
	view   atomic.Pointer[view]
	// counter counts the connections that come from now on.
	counter atomic.Pointer[metrics.Port]

	// guarded by Set.mu until the socket drains
	name  string // of the port
	drain time.Duration
}

// view is the port of a socket in a plan, so that it is looked up once for a
// plan and not for every request.
type view struct {
	plan *plan.Plan
	port *exchange.Port
	on   *plan.Port // says what is spoken: the last port on the socket's address
}

// opened is the sockets that a change adds, and the ports that cannot be opened
// yet, by address.
type opened struct {
	sockets map[string]*socket
	quics   map[netip.AddrPort]*quicSocket
	udps    map[netip.AddrPort]*udpSocket
	waiting map[string]*State
}

// close closes the sockets again.
func (o *opened) close() {
	for _, s := range o.sockets {
		s.Close()
		s.counter.Load().Retire()
	}
	for _, s := range o.udps {
		s.Close()
	}
}

// openSocketsLocked opens what the plan wants and is not open. An address that
// cannot be opened refuses a change; at the start, and for a port that waits
// already, it makes the port wait.
func (c *Set) openSocketsLocked(ch *Change) (*opened, error) {
	o := &opened{sockets: map[string]*socket{}, quics: map[netip.AddrPort]*quicSocket{}, udps: map[netip.AddrPort]*udpSocket{}, waiting: map[string]*State{}}
	for _, port := range ch.plan.Listeners() {
		key := port.Address().String()
		if port.Protocol() == config.HTTP3 || c.mu.sockets[key] != nil {
			continue
		}
		s, err := c.open(ch.plan, port)
		if err == nil {
			o.sockets[key] = s
			continue
		}
		before := c.mu.waiting[key]
		if ch.previous != nil && before == nil || !Temporary(err) {
			o.close()
			return nil, errPort(port, err)
		}
		o.waiting[key] = waitingState(port, err, before)
	}
	err := c.openQUICLocked(ch, o)
	if err == nil {
		err = c.openUDPLocked(ch, o)
	}
	if err != nil {
		o.close()
		c.abandonQUIC(o)
		return nil, err
	}
	return o, nil
}

// errPort says why a port cannot be opened, and what helps.
func errPort(port *plan.Port, err error) error {
	return fmt.Errorf("port %s: %w; %s", port.Name(), err, help(err, port))
}

// Temporary reports whether opening an address may succeed later without a
// change of the configuration.
func Temporary(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// open opens the socket of a port, beside sockets of ours that a change is about
// to close.
func (c *Set) open(p *plan.Plan, port *plan.Port) (*socket, error) {
	var beside []*listen.Socket
	for _, s := range c.mu.sockets {
		if s.Address().Port() == port.Address().Port() && p.At(s.Address()) == nil {
			beside = append(beside, s.Socket)
		}
	}
	c.drains.awaitRelease(port.Address().Port())
	l, err := c.bind(port.Address(), beside, c.log)
	if err != nil {
		return nil, err
	}
	s := &socket{Socket: l, since: time.Now()}
	c.settle(s, p, port)
	s.turn = make(chan struct{}, handshakesAtOnce)
	s.plain, s.secure = c.speaker(s, "http"), c.speaker(s, "https")
	return s, nil
}

// settle gives a socket its place in a plan. What it returns, unless it is nil,
// is retired when all sockets have theirs: the counter under the port's old name.
func (c *Set) settle(s *socket, p *plan.Plan, port *plan.Port) (old *metrics.Port) {
	if s.name != port.Name() {
		old = s.counter.Swap(c.metrics.Port(port.Name()))
	}
	s.name, s.drain = port.Name(), port.Drain()
	s.view.Store(&view{p, s.front(port, s.view.Load()), port})
	s.SetMost(c.most(p, port))
	return old
}

// most returns how many connections a port may have open.
func (c *Set) most(p *plan.Plan, port *plan.Port) int {
	most := port.Connections()
	if limit := connectionLimit() / max(len(p.Listeners()), 1); most == 0 || limit > 0 && most > limit {
		most = limit
	}
	return most
}

// port returns the socket's port in the current plan: the one on its address;
// else, while the socket drains, the one that has its address among others; else
// the one with its name, which has moved; else the one it last had.
func (s *socket) port(p *plan.Plan) *exchange.Port { return s.look(p).port }

// look returns what the socket is in a plan. Only changes keep the result: a
// request that has held on to an old plan is not to bring it back.
func (s *socket) look(p *plan.Plan) *view {
	v := s.view.Load()
	if v.plan == p {
		return v
	}
	next := &view{p, v.port, v.on}
	if port := p.At(s.Address()); port != nil {
		next.port, next.on = s.front(port, v), port
	} else if port := covering(p, s.Address()); port != nil {
		next.port, next.on = s.front(port, v), port
	} else if port := p.Port(v.port.Place.Port); port != nil {
		next.port = port.Front()
	}
	return next
}

// front returns what serves the HTTP of a socket that is now a port's. One that
// speaks none leaves it to who served it before: connections that were open when
// a TCP proxy took the address end on that.
func (s *socket) front(port *plan.Port, before *view) *exchange.Port {
	if port.Stream() != nil && before != nil {
		return before.port
	}
	return port.Front()
}

// covering returns the port that listens on all addresses of a family, this one
// among them; nil if there is none. A client that still comes to the narrower
// socket asks that port.
func covering(p *plan.Plan, address netip.AddrPort) *plan.Port {
	for _, port := range p.Listeners() {
		all := port.Address()
		if all.Port() == address.Port() && all.Addr().IsUnspecified() && (all.Addr().Is6() || address.Addr().Is4()) && port.Protocol() != config.HTTP3 {
			return port
		}
	}
	return nil
}

// speaker returns what speaks HTTP on a socket.
func (c *Set) speaker(s *socket, scheme string) speaker {
	port := func() *exchange.Port { return s.port(c.current.Load()) }
	return speaker{
		h1: &h1.Front{Scheme: scheme, Port: port},
		h2: &h2.Front{Scheme: scheme, Port: port, Log: c.log, Flooded: func(f h2.Flood) { c.metrics.Flooded(f.String()) }},
	}
}

// serve begins to take connections.
func (c *Set) serve(s *socket) {
	s.Serve(func(nc net.Conn) listen.Conn {
		counter := s.counter.Load()
		counter.Opened()
		return &counted{c.accept(s, nc, counter), counter}
	})
}

// accept returns what serves a new connection: what is spoken on a socket is
// looked up in the plan, so a port changes its protocol and keeps its socket.
func (c *Set) accept(s *socket, nc net.Conn, counter *metrics.Port) listen.Conn {
	serial := c.serials.Add(1)
	port := s.look(c.current.Load()).on
	header := port.Announced(nc.RemoteAddr())
	switch {
	case port.Stream() != nil && header == 0:
		return port.Stream().NewConn(nc, nil, "")
	case port.Stream() != nil:
		return &fresh{nc: nc, header: header, on: port, to: &s.plain, counter: counter}
	case port.TLS() != nil:
		return &fresh{nc: nc, header: header, on: port, tls: port.TLS(), to: &s.secure, serial: serial, turn: s.turn, counter: counter}
	case header > 0 || port.H2C():
		return &fresh{nc: nc, header: header, on: port, to: &s.plain, serial: serial, counter: counter}
	}
	return s.plain.h1.NewConn(nc, serial)
}

// counted is a connection that tells of its end.
type counted struct {
	listen.Conn
	counter *metrics.Port
}

// Serve serves the connection.
func (c *counted) Serve() {
	defer c.counter.Closed()
	c.Conn.Serve()
}

// takeSocketsLocked takes the sockets of a change into use and closes those that
// it does not want. Their connections end in their own time.
func (c *Set) takeSocketsLocked(ch *Change) {
	for key, s := range ch.opened.sockets {
		c.mu.sockets[key] = s
		c.serve(s)
	}
	var counters []*metrics.Port
	for key, s := range c.mu.sockets {
		port := ch.plan.At(s.Address())
		if port == nil {
			delete(c.mu.sockets, key)
			c.drain(s)
			continue
		}
		was := s.view.Load().on
		if old := c.settle(s, ch.plan, port); old != nil {
			counters = append(counters, old)
		}
		if !port.Continues(was) {
			s.Renew() // what was agreed on open connections is not what the port asks for
		}
	}
	counters = append(counters, c.takeQUICLocked(ch)...)
	c.takeUDPLocked(ch)
	for _, old := range counters {
		old.Retire()
	}
	c.drains.follow(ch.plan)
	c.mu.waiting = ch.opened.waiting
}

// drain closes a socket in the background.
func (c *Set) drain(s *socket) {
	name, open := s.name, s.Len()
	c.log.Info("port closes", "port", name, "address", s.Address().String(), "connections", open)
	c.drains.begin(s, func(cut int) {
		s.counter.Load().Retire()
		if cut > 0 {
			c.log.Warn("connections were cut, their time to end was over", "port", name, "address", s.Address().String(), "connections", cut)
		}
	})
}
