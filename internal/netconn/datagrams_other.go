//go:build !linux || race || !(amd64 || arm64)

package netconn

import "net"

// NewDatagrams returns c for quic-go, which does here what it can.
func NewDatagrams(c *net.UDPConn) net.PacketConn { return c }
