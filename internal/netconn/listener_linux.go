package netconn

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener accepts the connections of a listening socket as a *Socket, with one
// system call for each. One goroutine accepts at a time.
type Listener struct {
	// constant
	address *net.TCPAddr
	served  netip.AddrPort // our address on all its connections; zero if they may differ
	file    *os.File
	raw     syscall.RawConn
	fn      func(uintptr) bool

	closed atomic.Bool
	got    accepted // owned by the goroutine that accepts
}

// accepted is what one call of accept brought.
type accepted struct {
	fd     int
	remote netip.AddrPort
	errno  syscall.Errno
}

// NewListener returns a listener that replaces l, which is closed. Connections
// inherit the options of a listening socket, so TCP_NODELAY is set there. If the
// descriptor is not available, NewListener returns l.
func NewListener(l *net.TCPListener) Listening {
	file, err := l.File()
	if err != nil {
		return l
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails where it cannot be waited for
	}
	if err == nil {
		err = noDelay(raw)
	}
	if err != nil {
		file.Close()
		return l
	}
	l.Close()
	n := &Listener{address: l.Addr().(*net.TCPAddr), file: file, raw: raw}
	if at := n.address.AddrPort(); !at.Addr().IsUnspecified() {
		n.served = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
	n.fn = n.accept
	return n
}

// noDelay makes a socket, or those that a listening socket accepts, send at once.
func noDelay(raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) })
	return errors.Join(err, failed)
}

// Accept waits for a connection and returns it, a *Socket.
func (l *Listener) Accept() (net.Conn, error) {
	err := l.raw.Read(l.fn)
	switch {
	case err != nil && l.closed.Load():
		err = net.ErrClosed
	case err == nil && l.got.errno != 0:
		err = os.NewSyscallError("accept4", l.got.errno)
	}
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.address, Err: err}
	}
	return newSocket(l.got.fd, l.got.remote, l.served), nil
}

// accept accepts one connection, or returns false to wait.
func (l *Listener) accept(fd uintptr) bool {
	l.got = sysAccept(fd)
	return l.got.errno != syscall.EAGAIN
}

// Addr returns the address that was bound, a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.address }

// SetDeadline bounds Accept.
func (l *Listener) SetDeadline(t time.Time) error { return l.file.SetReadDeadline(t) }

// SyscallConn returns access to the descriptor.
func (l *Listener) SyscallConn() (syscall.RawConn, error) { return l.file.SyscallConn() }

// File returns a duplicate of the listening socket. Closing either does not affect the
// other.
func (l *Listener) File() (f *os.File, err error) {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dup int
	var errno error
	if err = raw.Control(func(fd uintptr) { dup, errno = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err == nil {
		err = errno
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(dup), "listener"), nil
}

// Close ends Accept and releases the address.
func (l *Listener) Close() error {
	if l.closed.Swap(true) {
		return net.ErrClosed
	}
	return l.file.Close()
}
