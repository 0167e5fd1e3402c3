package udp

import (
	"net"
	"syscall"
	"testing"
	"time"

	"headgate/internal/server/balance"
)

// A router that has no room for a datagram tells so by ICMP, and the socket by an error.
// The session goes on: others pass.
func TestASessionGoesOnAfterADatagramThatWasTooLarge(t *testing.T) {
	server := echo(t, "a")
	h := start(t, 100, time.Minute, server)
	p := h.Table.proxy.Load()
	client := h.client(t)
	to := server.LocalAddr().(*net.UDPAddr)
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, outcome := p.Group.Choose(&balance.Ask{}); outcome != balance.Chosen {
		t.Fatal(outcome)
	}
	s := newSession(h.Table, p, p.Servers[0], conn, client.LocalAddr().(*net.UDPAddr).AddrPort(), nil)
	tells := []error{syscall.EMSGSIZE, syscall.EPROTO}
	s.link.recvFn = func(fd uintptr) bool {
		if len(tells) == 0 {
			return s.link.onReceive(fd)
		}
		s.link.inErr, tells = tells[0], tells[1:]
		return true
	}
	send := s.link.sendFn
	sends := 0
	s.link.sendFn = func(fd uintptr) bool {
		if sends++; sends == 1 {
			s.link.outErr = syscall.EMSGSIZE
			return true
		}
		return send(fd)
	}
	h.enter(s)
	if got, err := roundTrip(client, "1"); got != "a1" || err != nil {
		t.Errorf("got %q and %v", got, err)
	}
	if n := h.tally.Counts().Accepted; n != 1 {
		t.Errorf("there were %d sessions, want one", n)
	}
}
