package netconn

import (
	"net"
	"net/netip"
)

// AddressOf returns the IP address of a network address; not valid where it has none.
func AddressOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr()
	case *net.UDPAddr:
		return a.AddrPort().Addr()
	case nil:
		return netip.Addr{}
	}
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}
