package netconn

import (
	"net"
	"syscall"
	"time"
)

// Stream is a TCP connection: a *net.TCPConn or a *Socket.
type Stream interface {
	net.Conn
	syscall.Conn
	// CloseWrite ends our side.
	CloseWrite() error
	// SetLinger is that of a *net.TCPConn.
	SetLinger(sec int) error
}

// Listening is a listening socket: a *net.TCPListener or what NewListener made of it.
type Listening interface {
	net.Listener
	syscall.Conn
	// SetDeadline bounds Accept.
	SetDeadline(t time.Time) error
}
