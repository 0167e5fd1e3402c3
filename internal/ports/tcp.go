package ports

import (
	"net"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/h2"
	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/plan"
	"headgate/internal/ports/accept"
	"headgate/internal/ports/listen"
)

// tcpSocket is the socket of an http or https port or of a TCP proxy.
type tcpSocket struct {
	*listen.Socket
	set    *Set
	of     *listener
	fronts *accept.Fronts
}

// openTCP opens the socket of a port.
func (s *Set) openTCP(l *listener, p *plan.Plan) (socket, error) {
	address := l.key.address
	var beside []*listen.Socket
	for k, open := range s.mu.open {
		if k.kind == tcpKind && k.address.Port() == address.Port() && p.At(k.address) == nil {
			beside = append(beside, open.socket.(*tcpSocket).Socket)
		}
	}
	s.drains.awaitRelease(address.Port())
	opened, err := s.bindOrInherit(l, p, beside)
	if err != nil {
		return nil, err
	}
	t := &tcpSocket{Socket: opened, set: s, of: l}
	t.fronts = accept.New(accept.Options{
		Log: s.log, Full: l.share.Full,
		Port:    func() *exchange.Port { return l.port(s.current.Load()) },
		Refused: l.refusals(s.log),
		Flooded: func(f h2.Flood) { s.metrics.Flooded(f.String()) },
	})
	return t, nil
}

func (t *tcpSocket) serve() error {
	t.Serve(t.accept)
	return nil
}

// accept returns what serves a new connection: what is spoken is looked up in the
// plan, so a port changes its protocol and keeps its socket.
func (t *tcpSocket) accept(nc net.Conn, waited bool) listen.Conn {
	port := t.of.viewIn(t.set.current.Load()).on
	counter := t.of.counter.Load()
	if waited && !port.IsStream() && netconn.HasLeft(nc) {
		// Its client closed the connection in the queue. Sending its request to a
		// server would delay clients that are still waiting.
		counter.Refused(metrics.RefusedFull)
		nc.Close()
		return nil
	}
	if port.Rejects(nc) && port.Announced(nc) == 0 {
		counter.Refused(metrics.RefusedBanned)
		nc.Close()
		return nil
	}
	counter.Opened()
	return &counted{t.fronts.Conn(nc, port, t.set.serials.Add(1), counter), counter}
}

// setPlan accepts clients when they have sent something, unless the server of a TCP
// proxy may have to send first.
func (t *tcpSocket) setPlan(*plan.Plan) { t.DeferAccept(!t.of.view.Load().on.IsStream()) }

// drain closes the socket, which is immediate, and lets the connections end.
func (t *tcpSocket) drain(within time.Duration) func() (int, bool) {
	return func() (int, bool) { return t.Drain(within), false }
}

// resume reports false: the address is given free at once, and opened again.
func (t *tcpSocket) resume() bool { return false }
