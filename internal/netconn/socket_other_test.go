//go:build !linux

package netconn_test

import (
	"net"
	"testing"

	"headgate/internal/netconn"
)

// socketPair is nil: there are no connections of our own on this system.
var socketPair func(t testing.TB) (*netconn.Conn, *net.TCPConn)
