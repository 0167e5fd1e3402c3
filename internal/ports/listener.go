package ports

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// kind is the protocol of a socket. Those of UDP can have the same address as one
// of TCP.
type kind uint8

const (
	tcpKind  kind = iota // http, https and TCP proxies
	quicKind             // http3
	udpKind              // UDP proxies
)

// key identifies a listener. It does not contain the name of a port, so that a port can be
// renamed, or change from http to https, without being closed.
type key struct {
	kind    kind
	address netip.AddrPort
}

// String returns the address, with udp/ in front for UDP.
func (k key) String() string {
	if k.kind == tcpKind {
		return k.address.String()
	}
	return "udp/" + k.address.String()
}

// keyOf returns the key of a port's listener.
func keyOf(port *plan.Port) key {
	switch port.Protocol() {
	case config.HTTP3:
		return key{quicKind, port.Address()}
	case config.UDP:
		return key{udpKind, port.Address()}
	}
	return key{tcpKind, port.Address()}
}

// in returns the port that a plan has on the key, or nil.
func (k key) in(p *plan.Plan) *plan.Port {
	switch k.kind {
	case quicKind:
		return p.AtQUIC(k.address)
	case udpKind:
		if u := p.AtUDP(k.address); u != nil {
			return u.Port
		}
		return nil
	}
	return p.At(k.address)
}

// wanted returns the ports of a plan, including those of TCP and UDP proxies.
func wanted(p *plan.Plan) []*plan.Port {
	all := p.Listeners()
	for _, u := range p.UDPProxies() {
		for i := range u.Ports {
			all = append(all, u.Ports[i].Port)
		}
	}
	return all
}

// socket is what is different for TCP, QUIC and UDP proxies.
type socket interface {
	// serve starts to accept clients. It is called once.
	serve() error
	// setPlan applies the plan that its listener belongs to.
	setPlan(p *plan.Plan)
	// Renew makes what is open end soon, as something else is spoken from now on.
	Renew()
	// Shed makes open connections end with their next response.
	Shed()
	// drain lets what is open end. It does not wait; what it returns does, and says
	// how many connections were cut at the end of the time, and whether resume has
	// called it off.
	drain(within time.Duration) (wait func() (cut int, resumed bool))
	// resume reopens a draining socket. It reports false if that is not
	// possible.
	resume() bool
	// Cut closes what is open at once, and returns how much there was. The socket
	// accepts new clients as before.
	Cut() int
	CutFrom(netip.Prefix) int
	// Close closes the socket with all that is open on it.
	Close()
	// file returns a duplicate of the socket, for another process; leave leaves the socket
	// to that process, which has the other end of the relay, and rejoin uses it again.
	file() (*os.File, error)
	leave(relay *os.File) error
	rejoin()
	// Released is closed when the address is free for another socket.
	Released() <-chan struct{}
	// Len and Accepted are how many connections or sessions are open and were begun.
	Len() int
	Accepted() uint64
}

// listener is an open socket, and what it is in the plans.
type listener struct {
	socket
	key     key
	since   time.Time
	share   *listen.Share
	serving bool // guarded by Set.mu
	// Of a draining listener that a change in progress has reopened; guarded by Set.mu.
	resumed *resumed
	view    atomic.Pointer[view]
	// counter counts the connections that come from now on. UDP proxies have none:
	// they count their sessions.
	counter atomic.Pointer[metrics.Port]
	told    clock.Spacing // of log lines about the full port
}

// tellEvery is the time between two log lines that say that a port is full.
const tellEvery = time.Minute

// resumed is what a listener was while it drained.
type resumed struct {
	view  *view
	since time.Time
}

// view is the port of a listener in a plan, so that it is looked up once for a plan
// and not for every request.
type view struct {
	plan *plan.Plan
	port *exchange.Port
	on   *plan.Port // says what is spoken: the last port on the listener's address
}

// name returns the name of the listener's port.
func (l *listener) name() string { return l.view.Load().on.Name() }

// setPlan assigns a listener to a port of a plan. The function that it returns,
// unless it is nil, is called when all listeners are assigned: it retires the
// counter under the port's old name.
func (l *listener) setPlan(p *plan.Plan, port *plan.Port, m *metrics.Registry) (old *metrics.Port) {
	was := l.view.Load()
	if was == nil || was.on.Name() != port.Name() {
		if l.key.kind != udpKind {
			old = l.counter.Swap(m.Port(port.Name()))
			l.counter.Load().AtLimit(l.share.Full())
		}
	}
	l.view.Store(&view{p, front(port, was), port})
	l.socket.setPlan(p)
	return old
}

// port returns the listener's port in the current plan: the one on its address;
// else, while it drains, the one that has its address among others; else the one
// with its name, which has moved; else the one it last had.
func (l *listener) port(p *plan.Plan) *exchange.Port { return l.viewIn(p).port }

// viewIn returns what the listener is in a plan. Only changes keep the result: a
// request that has held on to an old plan is not to bring it back.
func (l *listener) viewIn(p *plan.Plan) *view {
	v := l.view.Load()
	if v.plan == p || p == nil {
		return v
	}
	next := &view{p, v.port, v.on}
	if port := l.key.in(p); port != nil {
		next.port, next.on = front(port, v), port
	} else if port := covering(p, l.key); port != nil {
		next.port, next.on = front(port, v), port
	} else if port := p.Port(v.port.Place.Port); port != nil {
		next.port = port.Front()
	}
	return next
}

// front returns the HTTP handler of a listener that now belongs to a port. A port
// without HTTP keeps the previous one: connections that were open when a TCP
// proxy replaced the port end with that.
func front(port *plan.Port, before *view) *exchange.Port {
	if port.IsStream() && before != nil {
		return before.port
	}
	return port.Front()
}

// covering returns the port that listens on all addresses of a family, that of a TCP
// listener among them; nil if there is none. Clients that still connect to the
// narrower socket are served by that port.
func covering(p *plan.Plan, k key) *plan.Port {
	if k.kind != tcpKind {
		return nil
	}
	for _, port := range p.Listeners() {
		all := port.Address()
		if all.Port() == k.address.Port() && all.Addr().IsUnspecified() && (all.Addr().Is6() || k.address.Addr().Is4()) && port.Protocol() != config.HTTP3 {
			return port
		}
	}
	return nil
}

// open opens the listener of a port, next to sockets of ours that the change to
// the plan is about to close. It reopens a draining one.
func (s *Set) open(p *plan.Plan, port *plan.Port) (*listener, error) {
	k := keyOf(port)
	if l, since := s.drains.resume(k); l != nil {
		l.resumed = &resumed{l.view.Load(), since}
		if old := l.setPlan(p, port, s.metrics); old != nil {
			old.Retire()
		}
		return l, nil
	}
	l := &listener{key: k, since: time.Now()}
	l.share = s.limit.NewShare(func(full bool) { s.full(l, full) })
	var err error
	switch k.kind {
	case tcpKind:
		l.socket, err = s.openTCP(l, p)
	case quicKind:
		l.socket, err = s.openQUIC(l, p)
	case udpKind:
		l.socket, err = s.openUDP(l, p)
	}
	if err != nil {
		l.share.Leave()
		return nil, err
	}
	l.setPlan(p, port, s.metrics)
	return l, nil
}

// serve starts to use a listener.
func (s *Set) serve(l *listener) {
	s.mu.open[l.key], l.resumed = l, nil
	if l.key.kind == udpKind {
		s.drains.cut(l.key.address)
	}
	if l.serving || s.mu.held {
		return
	}
	l.serving = true
	if err := l.socket.serve(); err != nil {
		s.log.Error("port does not accept connections", "port", l.name(), "address", l.key.address.String(), "error", err)
	}
}

// abandon closes a listener that was opened for a cancelled change.
func (s *Set) abandon(l *listener) {
	if was := l.resumed; was != nil { // it goes on draining as it did
		l.resumed = nil
		if name := was.view.on.Name(); name != l.name() {
			l.counter.Swap(s.metrics.Port(name)).Retire()
		}
		l.view.Store(was.view)
		s.drainQuietly(l, was.since)
		return
	}
	if p := s.current.Load(); p != nil {
		if port := covering(p, l.key); port != nil {
			s.handOver(l, p, port)
			return
		}
	}
	l.Close()
	l.share.Leave()
	if c := l.counter.Load(); c != nil {
		c.Retire()
	}
}

// handOver closes a listener next to a port whose address includes its own: the system has
// assigned it clients that connected meanwhile, and they belong to the port.
func (s *Set) handOver(l *listener, p *plan.Plan, port *plan.Port) {
	if old := l.setPlan(p, port, s.metrics); old != nil {
		old.Retire()
	}
	l.serving = true
	if err := l.socket.serve(); err != nil {
		s.log.Error("port does not accept connections", "port", l.name(), "address", l.key.address.String(), "error", err)
	}
	s.drainQuietly(l, time.Now())
}

// drain closes a listener in the background.
func (s *Set) drain(l *listener) {
	noun := "connections"
	if l.key.kind == udpKind {
		noun = "sessions"
	}
	s.log.Info("port closes", "port", l.name(), "address", l.key.address.String(), noun, l.Len())
	s.drainQuietly(l, time.Now())
}

// drainQuietly is drain without a word in the log, of what drains since then.
func (s *Set) drainQuietly(l *listener, since time.Time) {
	name := l.name()
	s.drains.start(l, since, func(cut int) {
		if c := l.counter.Load(); c != nil {
			c.Retire()
		}
		l.share.Leave()
		if cut > 0 {
			s.log.Warn("drain timeout exceeded, connections closed", "port", name, "address", l.key.address.String(), "connections", cut)
		}
	})
}

// packets returns the UDP sockets with a port number that are not in a plan any more.
func (s *Set) packets(p *plan.Plan, number uint16) (all []*net.UDPConn) {
	for _, l := range s.mu.open {
		if l.key.kind != tcpKind && l.key.address.Port() == number && l.key.in(p) == nil {
			all = append(all, l.socket.(datagrams).Conn())
		}
	}
	for _, l := range s.drains.at(number) {
		all = append(all, l.socket.(datagrams).Conn())
	}
	return all
}

// datagrams is a socket of UDP, whatever is spoken on it.
type datagrams interface{ Conn() *net.UDPConn }

// counted is a connection that reports its end.
type counted struct {
	listen.Conn
	counter *metrics.Port
}

// Remote returns the address of the client; not valid while it is not known.
func (c *counted) Remote() netip.Addr {
	if known, ok := c.Conn.(interface{ Remote() netip.Addr }); ok {
		return known.Remote()
	}
	return netip.Addr{}
}

// Leave makes the connection end in its own time.
func (c *counted) Leave() { listen.Leave(c.Conn) }

// Serve serves the connection.
func (c *counted) Serve() (park func(resume func()) bool) {
	defer func() {
		if park == nil {
			c.counter.Closed()
		}
	}()
	return c.Conn.Serve()
}

// Idle returns the client of a connection, and since when it has no request in
// progress. ok is false also for a connection that is never closed for another.
func (c *counted) Idle() (client netip.Addr, since int64, ok bool) {
	if y, can := c.Conn.(listen.Yielder); can {
		return y.Idle()
	}
	return client, 0, false
}

// Yield closes the connection if it has been idle since then, and counts it.
func (c *counted) Yield(since int64) bool {
	y, can := c.Conn.(listen.Yielder)
	if !can || !y.Yield(since) {
		return false
	}
	c.counter.Yielded()
	return true
}

// Bind opens an address, beside sockets that will be closed soon.
type Bind func(address netip.AddrPort, beside []*listen.Socket, share *listen.Share, log *slog.Logger) (*listen.Socket, error)
