package netconn

import "net"

// Announced is a connection that a proxy in front passes on, with the addresses
// from its PROXY protocol header. Otherwise it behaves like the connection that
// it wraps, at the same cost.
type Announced struct {
	Stream
	remote, local net.Addr
}

// Announce returns nc with other addresses.
func Announce(nc Stream, remote, local net.Addr) *Announced {
	return &Announced{nc, remote, local}
}

// RemoteAddr returns the client's address.
func (a *Announced) RemoteAddr() net.Addr { return a.remote }

// LocalAddr returns the address that the client connected to.
func (a *Announced) LocalAddr() net.Addr { return a.local }
