package ports

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"headgate/internal/plan"
	"headgate/internal/ports/listen"
	"headgate/internal/stream/udp"
)

// udpSocket is the open socket of a UDP proxy.
type udpSocket struct {
	*udp.Table
	address netip.AddrPort
	since   time.Time
	serving bool       // guarded by Set.mu
	port    *plan.Port // guarded by Set.mu
}

// openUDPLocked opens the sockets of UDP proxies that the plan wants and that are
// not open, by the rules of openSocketsLocked.
func (c *Set) openUDPLocked(ch *Change, o *opened) error {
	for _, u := range ch.plan.UDPProxies() {
		address := u.Port.Address()
		if c.mu.udps[address] != nil {
			continue
		}
		s, err := c.openUDP(ch.plan, u)
		if err == nil {
			o.udps[address] = s
			continue
		}
		key := quicKey(address)
		before := c.mu.waiting[key]
		if ch.previous != nil && before == nil || !Temporary(err) {
			return errPort(u.Port, err)
		}
		o.waiting[key] = waitingState(u.Port, err, before)
	}
	return nil
}

// openUDP opens the socket of a UDP proxy, beside sockets of ours that a change is
// about to close.
func (c *Set) openUDP(p *plan.Plan, u *plan.UDPProxy) (*udpSocket, error) {
	conn, err := listen.Packets(u.Port.Address(), c.besideLocked(p, u.Port.Address().Port()))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", u.Port.Address(), err)
	}
	return &udpSocket{Table: udp.NewTable(conn, u.Proxy), address: u.Port.Address(), since: time.Now(), port: u.Port}, nil
}

// besideLocked returns the sockets with a port number that take datagrams, and that
// a plan does not want any more: those of UDP proxies, and those of QUIC, of which
// some drain already.
func (c *Set) besideLocked(p *plan.Plan, number uint16) (all []*net.UDPConn) {
	for address, s := range c.mu.udps {
		if address.Port() == number && p.AtUDP(address) == nil {
			all = append(all, s.Conn())
		}
	}
	for address, s := range c.mu.quics {
		if address.Port() == number && p.AtQUIC(address) == nil {
			all = append(all, s.Conn())
		}
	}
	for _, s := range c.quicDrains.at(number) {
		all = append(all, s.Conn())
	}
	return all
}

// takeUDPLocked takes the sockets of a change into use and closes those that it
// does not want, with their sessions: a datagram has no connection that could end
// in its own time.
func (c *Set) takeUDPLocked(ch *Change) {
	for address, s := range ch.opened.udps {
		c.mu.udps[address] = s
		c.quicDrains.cut(address)
	}
	for address, s := range c.mu.udps {
		u := ch.plan.AtUDP(address)
		if u == nil {
			delete(c.mu.udps, address)
			c.closeUDP(s)
			continue
		}
		c.serveUDP(s, u)
	}
}

// serveUDP begins to carry datagrams by a proxy, or goes on by it.
func (c *Set) serveUDP(s *udpSocket, u *plan.UDPProxy) {
	s.port = u.Port
	s.Use(u.Proxy)
	if !s.serving {
		s.serving = true
		s.Serve()
	}
}

func (c *Set) closeUDP(s *udpSocket) {
	c.log.Info("port closes", "port", s.port.Name(), "address", s.address.String(), "sessions", s.Len())
	s.Close()
}

// state returns how the socket stands. port is what it serves.
func (s *udpSocket) state(port *plan.Port) State {
	return State{
		Name: port.Name(), Address: s.address.String(), Protocol: port.Protocol(),
		State: "listening", Since: s.since, Connections: s.Len(), Accepted: s.Begun(),
	}
}
