//go:build !linux

package udp

import (
	"net"
	"net/netip"
	"slices"
)

// socket is the socket that clients send to.
type socket struct{ conn *net.UDPConn }

func newSocket(conn *net.UDPConn) *socket { return &socket{conn} }

// receive waits for a datagram. Which of our addresses it was for is not known on
// this system.
func (s *socket) receive(p []byte) (n int, from netip.AddrPort, local []byte, err error) {
	n, from, err = s.conn.ReadFromUDPAddrPort(p)
	return n, from, nil, err
}

// destination returns the address that a datagram was sent to, as far as it is known.
func (s *socket) destination([]byte) netip.AddrPort {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// link is a session's way to its server and back to its client.
type link struct {
	server, client *net.UDPConn
	to             netip.AddrPort
	in             []byte
	announce       []byte // goes before each datagram to the server
}

// open readies the way between a socket and a connection to a server.
func (l *link) open(s *socket, conn *net.UDPConn, client netip.AddrPort, _ []byte) {
	l.server, l.client, l.to = conn, s.conn, client
}

// send passes a datagram to the server.
func (l *link) send(p []byte) error {
	if l.announce != nil {
		p = slices.Concat(l.announce, p)
	}
	_, err := l.server.Write(p)
	return err
}

// receive waits for a datagram of the server and shows it to use.
func (l *link) receive(use func([]byte)) error {
	if l.in == nil {
		l.in = make([]byte, maxDatagram)
	}
	n, err := l.server.Read(l.in)
	if err == nil {
		use(l.in[:n])
	}
	return err
}

// answer sends a datagram to the client.
func (l *link) answer(p []byte) error {
	_, err := l.client.WriteToUDPAddrPort(p, l.to)
	return err
}
