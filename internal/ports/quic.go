package ports

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/front/h3"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// quicSocket is the open socket of an http3 port.
type quicSocket struct {
	*listen.QUIC
	front *h3.Front
	since time.Time
	view  atomic.Pointer[view]
	// counter counts the connections that come from now on.
	counter atomic.Pointer[metrics.Port]

	// guarded by Set.mu
	name  string // of the port
	drain time.Duration
}

// quicKey is what a port that takes UDP is called among those that wait.
func quicKey(address netip.AddrPort) string { return udpPrefix + address.String() }

const udpPrefix = "udp/"

// openQUICLocked opens the UDP sockets that the plan wants and that are not open,
// by the rules of openSocketsLocked. A socket that drains is taken back.
func (c *Set) openQUICLocked(ch *Change, o *opened) error {
	for _, port := range ch.plan.Ports() {
		if port.Protocol() != config.HTTP3 || c.mu.quics[port.Address()] != nil {
			continue
		}
		s, err := c.openQUIC(ch.plan, port)
		if err == nil {
			o.quics[port.Address()] = s
			continue
		}
		key := quicKey(port.Address())
		before := c.mu.waiting[key]
		if ch.previous != nil && before == nil || !Temporary(err) {
			return errPort(port, err)
		}
		o.waiting[key] = waitingState(port, err, before)
	}
	return nil
}

// openQUIC opens the socket of a port, beside sockets of ours that a change is
// about to close.
func (c *Set) openQUIC(p *plan.Plan, port *plan.Port) (*quicSocket, error) {
	if s := c.quicDrains.resume(port.Address()); s != nil {
		c.settleQUIC(s, p, port)
		return s, nil
	}
	s := &quicSocket{since: time.Now()}
	var err error
	s.QUIC, err = listen.OpenQUIC(port.Address(), c.besideLocked(p, port.Address().Port()), listen.QUICSettings{
		TLS:    func() (*tls.Config, error) { return s.tls(c.current.Load()) },
		Config: func() *quic.Config { return h3.Config(s.look(c.current.Load()).port) },
		Full:   func() { s.counter.Load().Refused(metrics.RefusedFull) },
		Failed: func() { s.counter.Load().Refused(metrics.RefusedHandshake) },
	}, c.log)
	if err != nil {
		return nil, err
	}
	c.settleQUIC(s, p, port)
	s.front = &h3.Front{
		Port: func() *exchange.Port { return s.look(c.current.Load()).port }, Log: c.log, Flooded: c.metrics.Flooded,
	}
	return s, nil
}

// serveQUIC begins to take connections, unless the socket was taken back and does
// so anyway.
func (c *Set) serveQUIC(s *quicSocket) {
	if s.Serving() {
		return
	}
	err := s.Serve(func(qc *quic.Conn) listen.Conn {
		counter := s.counter.Load()
		counter.Opened()
		return &counted{s.front.NewConn(qc, c.serials.Add(1)), counter}
	})
	if err != nil {
		c.log.Error("port takes no connections", "port", s.name, "address", s.Address().String(), "error", err)
	}
}

// abandonQUIC gives up the sockets of a change that is not made.
func (c *Set) abandonQUIC(o *opened) {
	for _, s := range o.quics {
		if s.Serving() {
			c.drainQUIC(s) // it drained before
			continue
		}
		s.Close()
		s.counter.Load().Retire()
	}
}

// settleQUIC is settle for a socket of QUIC.
func (c *Set) settleQUIC(s *quicSocket, p *plan.Plan, port *plan.Port) (old *metrics.Port) {
	if s.name != port.Name() {
		old = s.counter.Swap(c.metrics.Port(port.Name()))
	}
	s.name, s.drain = port.Name(), port.Drain()
	s.view.Store(&view{p, port.Front(), port})
	s.SetMost(c.most(p, port))
	return old
}

// look returns what the socket is in a plan: the port on its address; else the one
// with its name, which has moved; else what it last was.
func (s *quicSocket) look(p *plan.Plan) *view {
	v := s.view.Load()
	if v.plan == p || p == nil {
		return v
	}
	next := &view{p, v.port, v.on}
	if port := p.AtQUIC(s.Address()); port != nil {
		next.port, next.on = port.Front(), port
	} else if port := p.Port(v.port.Place.Port); port != nil {
		next.port = port.Front()
	}
	return next
}

// errNotSecure cannot come: an http3 port has TLS.
var errNotSecure = errors.New("the port has no TLS")

// tls returns how the socket's port speaks TLS.
func (s *quicSocket) tls(p *plan.Plan) (*tls.Config, error) {
	if cfg := s.look(p).on.TLS(); cfg != nil {
		return cfg, nil
	}
	return nil, errNotSecure
}

// takeQUICLocked takes the sockets of a change into use and closes those that it
// does not want. It returns the counters to be retired.
func (c *Set) takeQUICLocked(ch *Change) (counters []*metrics.Port) {
	for address, s := range ch.opened.quics {
		c.mu.quics[address] = s
		c.serveQUIC(s)
	}
	for address, s := range c.mu.quics {
		port := ch.plan.AtQUIC(address)
		if port == nil {
			delete(c.mu.quics, address)
			c.drainQUIC(s)
			continue
		}
		was := s.view.Load().on
		if old := c.settleQUIC(s, ch.plan, port); old != nil {
			counters = append(counters, old)
		}
		if !port.Continues(was) {
			s.Renew()
		}
	}
	c.quicDrains.follow(ch.plan)
	c.advertiseLocked(ch.plan)
	return counters
}

// advertiseLocked makes https ports tell clients of the http3 ports beside them that
// listen.
func (c *Set) advertiseLocked(p *plan.Plan) {
	for _, port := range p.Ports() {
		if beside := port.Beside(); beside != nil {
			port.Advertise(c.mu.quics[beside.Address()] != nil)
		}
	}
}

// drainQUIC closes a socket in the background.
func (c *Set) drainQUIC(s *quicSocket) {
	name, open := s.name, s.Len()
	c.log.Info("port closes", "port", name, "address", s.Address().String(), "connections", open)
	c.quicDrains.begin(s, func(cut int) {
		s.counter.Load().Retire()
		if cut > 0 {
			c.log.Warn("connections were cut, their time to end was over", "port", name, "address", s.Address().String(), "connections", cut)
		}
	})
}

func (s *quicSocket) state(word string, since time.Time) State {
	on := s.view.Load().on
	return State{
		Name: on.Name(), Address: s.Address().String(), Protocol: on.Protocol(),
		State: word, Since: since, Connections: s.Len(), Accepted: s.Accepted(), SelfSigned: on.SelfSigned(),
	}
}
