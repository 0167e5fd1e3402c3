//go:build !linux

package netconn

import "net"

// NewListener returns l on this system.
func NewListener(l *net.TCPListener) Listening { return l }
