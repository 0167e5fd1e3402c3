//go:build !linux

package netconn

import (
	"net"
	"time"
)

// await cannot look without reading on this system.
func await(net.Conn, time.Duration, func([]byte) error, []byte) bool { return true }
