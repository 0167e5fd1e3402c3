package ports

import (
	"net/netip"
	"sync"
	"time"

	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// quicDrains are the sockets of QUIC that are being closed. Unlike those of TCP
// they hold their address until the last connection has ended, so one that is
// wanted again is taken back.
type quicDrains struct {
	mu struct {
		sync.Mutex
		sockets map[*quicSocket]time.Time // since when they drain
	}
	running sync.WaitGroup
}

// begin drains a socket, in the background. done is called when its connections
// have ended, with how many were cut.
func (d *quicDrains) begin(s *quicSocket, done func(cut int)) {
	d.mu.Lock()
	if d.mu.sockets == nil {
		d.mu.sockets = map[*quicSocket]time.Time{}
	}
	d.mu.sockets[s] = time.Now()
	d.mu.Unlock()
	drain, within := s.Stop(), s.drain
	d.running.Go(func() {
		cut, resumed := s.Drain(drain, within)
		if resumed {
			return
		}
		d.mu.Lock()
		delete(d.mu.sockets, s)
		d.mu.Unlock()
		done(cut)
	})
}

// resume takes a socket on this address back into use, if one drains. It returns
// nil when there is none.
func (d *quicDrains) resume(address netip.AddrPort) *quicSocket {
	d.mu.Lock()
	var found *quicSocket
	for s := range d.mu.sockets {
		if s.Address() == address {
			found = s
		}
	}
	if found == nil {
		d.mu.Unlock()
		return nil
	}
	if found.Resume() {
		delete(d.mu.sockets, found)
		d.mu.Unlock()
		return found
	}
	d.mu.Unlock()
	<-found.Released()
	return nil
}

// at returns the sockets that drain with this port number.
func (d *quicDrains) at(port uint16) (all []*listen.QUIC) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.mu.sockets {
		if s.Address().Port() == port {
			all = append(all, s.QUIC)
		}
	}
	return all
}

// cut ends the connections of sockets that drain where a UDP proxy has come: what
// is sent to one address cannot be shared out among two. It returns when the
// address is the proxy's alone.
func (d *quicDrains) cut(address netip.AddrPort) {
	for _, s := range d.at(address.Port()) {
		at := s.Address().Addr()
		if at == address.Addr() || at.IsUnspecified() || address.Addr().IsUnspecified() {
			d.running.Go(s.Close)
			<-s.Released()
		}
	}
}

// wait returns when every socket has drained.
func (d *quicDrains) wait() { d.running.Wait() }

// states returns how the sockets stand.
func (d *quicDrains) states() (all []State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s, since := range d.mu.sockets {
		all = append(all, s.state("draining", since))
	}
	return all
}

// follow brings the sockets to a new plan, so that none holds on to an old one.
func (d *quicDrains) follow(p *plan.Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.mu.sockets {
		s.view.Store(s.look(p))
	}
}
