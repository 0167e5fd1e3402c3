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

// udpSocket is the socket of a UDP proxy. It ends with its sessions: a datagram has no
// connection that could end in its own time.
type udpSocket struct {
	*udp.Table
	of       *listener
	released chan struct{}
}

// openUDP opens the socket of a UDP proxy.
func (s *Set) openUDP(l *listener, p *plan.Plan) (socket, error) {
	address := l.key.address
	conn, err := s.openPackets(l, p)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", address, err)
	}
	return &udpSocket{udp.NewTable(conn, p.AtUDP(address).Proxy), l, make(chan struct{})}, nil
}

// openPackets opens a socket, or uses the inherited one.
func (s *Set) openPackets(l *listener, p *plan.Plan) (*net.UDPConn, error) {
	if f := s.takeSocket(l, p); f != nil {
		return listen.InheritPackets(l.key.address, f)
	}
	return listen.Packets(l.key.address, s.packets(p, l.key.address.Port()))
}

func (u *udpSocket) serve() error {
	u.Serve()
	return nil
}

// setPlan goes on by the proxy of the plan, and ends sessions at servers that it has
// not.
func (u *udpSocket) setPlan(p *plan.Plan) { u.Use(p.AtUDP(u.of.key.address).Proxy) }

// Renew does nothing: there is one way to carry datagrams.
func (u *udpSocket) Renew() {}
func (u *udpSocket) Shed()  {}

// drain closes the socket.
func (u *udpSocket) drain(time.Duration) func() (int, bool) {
	u.Close()
	return func() (int, bool) { return 0, false }
}

func (u *udpSocket) resume() bool { return false }

// Close closes the socket and ends all sessions.
func (u *udpSocket) Close() {
	u.Table.Close()
	close(u.released)
}

// Released is closed when Close has ended.
func (u *udpSocket) Released() <-chan struct{} { return u.released }

// Accepted returns how many sessions there were.
func (u *udpSocket) Accepted() uint64 { return u.Begun() }

// CutFrom closes nothing: sessions of a banned client end by their idle timeout, and it
// gets no new ones.
func (*udpSocket) CutFrom(netip.Prefix) int { return 0 }
