package listen

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// Packets binds an address for datagrams. beside are sockets of this process on
// overlapping addresses that will be closed soon; see Open. The error is the
// system's alone.
func Packets(address netip.AddrPort, beside []*net.UDPConn) (*net.UDPConn, error) {
	shared := len(beside) > 0
	for _, c := range beside {
		share(c, true)
		defer share(c, false)
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		if !shared {
			return nil
		}
		return sharePackets(raw)
	}}
	pc, err := lc.ListenPacket(context.Background(), packetNetwork(address), address.String())
	if err != nil {
		return nil, cause(err)
	}
	c := pc.(*net.UDPConn)
	if shared {
		share(c, false)
	}
	return c, nil
}

// packetNetwork is network for datagrams.
func packetNetwork(address netip.AddrPort) string { return "udp" + network(address)[len("tcp"):] }
