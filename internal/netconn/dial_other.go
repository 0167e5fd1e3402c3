//go:build !linux

package netconn

import (
	"context"
	"net"
	"net/netip"
)

// Dial connects to an address over TCP. ctx bounds it.
func Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	return d.DialContext(ctx, "tcp", address.String())
}
