package ports

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/h3"
	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// quicSocket is the socket of an http3 port. It holds all its connections, so it
// stays open until the last of them has ended; if its port comes back before, it is
// reopened.
type quicSocket struct {
	*listen.QUIC
	set   *Set
	of    *listener
	front *h3.Front
}

// errNotSecure cannot come: an http3 port has TLS.
var errNotSecure = errors.New("the port has no TLS")

// openQUIC opens the socket of a port.
func (s *Set) openQUIC(l *listener, p *plan.Plan) (socket, error) {
	look := func() *view { return l.viewIn(s.current.Load()) }
	front := &h3.Front{Port: func() *exchange.Port { return look().port }, Clients: clients.New(), Log: s.log, Flooded: s.metrics.Flooded}
	front.Clients.Refused = l.refusals(s.log)
	settings := listen.QUICSettings{
		Keys: s.quic,
		TLS: func() (*tls.Config, error) {
			if cfg := look().on.TLS(); cfg != nil {
				return cfg, nil
			}
			return nil, errNotSecure
		},
		Config: front.Config,
		Full:   func() { l.counter.Load().Refused(metrics.RefusedFull) },
		Failed: func() { l.counter.Load().Refused(metrics.RefusedHandshake) },
		Banned: func(client net.Addr) bool { return look().on.RejectsFrom(client) },
		Reject: func() { l.counter.Load().Refused(metrics.RefusedBanned) },
		Lost:   func(op string) { l.counter.Load().DatagramLost(op == netconn.SendDatagram) },
	}
	opened, err := s.openQUICSocket(l, p, settings)
	if err != nil {
		return nil, err
	}
	return &quicSocket{QUIC: opened, set: s, of: l, front: front}, nil
}

// openQUICSocket opens a socket, or uses the inherited one.
func (s *Set) openQUICSocket(l *listener, p *plan.Plan, settings listen.QUICSettings) (*listen.QUIC, error) {
	at := l.key.address
	if f := s.takeSocket(l, p); f != nil {
		return listen.InheritQUIC(at, f, s.inherit.TakeFile(relayPrefix+l.key.fileName()), l.share, settings, s.log)
	}
	return listen.OpenQUIC(at, s.packets(p, at.Port()), l.share, settings, s.log)
}

func (q *quicSocket) serve() error {
	return q.Serve(func(qc *quic.Conn) listen.Conn {
		counter := q.of.counter.Load()
		counter.Opened()
		return &counted{q.front.NewConn(qc, q.set.serials.Add(1)), counter}
	})
}

func (q *quicSocket) setPlan(*plan.Plan) {}

func (q *quicSocket) drain(within time.Duration) func() (int, bool) { return q.Drain(within) }

func (q *quicSocket) resume() bool { return q.Resume() }

// advertiseLocked makes https ports announce the http3 ports next to them that
// listen.
func (s *Set) advertiseLocked(p *plan.Plan) {
	for _, port := range p.Ports() {
		if beside := port.Beside(); beside != nil {
			port.Advertise(s.mu.open[keyOf(beside)] != nil)
		}
	}
}
