package netconn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSelfDials is how often Dial tries again after it has connected to
// itself.
const maxSelfDials = 3

// Dial connects to an address over TCP and returns a *Socket that sends at once. ctx
// bounds it. The error is a *net.OpError, as from a net.Dialer.
func Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	if address.Addr().Zone() != "" {
		var d net.Dialer // which knows the numbers of interfaces
		return d.DialContext(ctx, "tcp", address.String())
	}
	var s *Socket
	err := ctx.Err()
	for range maxSelfDials {
		if err == nil {
			s, err = dial(ctx, address)
		}
		if err != errSelf {
			break
		}
		err = nil
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(address), Err: dialFault(err)}
	}
	return s, nil
}

// errSelf means that a socket was connected to itself: this happens if the address is
// local, has no listener, and the system chooses its port for the client's side.
var errSelf = errors.New("connected to itself")

// dialFault says in the words of package net what ended a dial.
func dialFault(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return os.ErrDeadlineExceeded
	case err == errSelf:
		return os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return err
}

// dial makes one attempt.
func dial(ctx context.Context, address netip.AddrPort) (*Socket, error) {
	fd, err := openTCP(address.Addr())
	if err != nil {
		return nil, err
	}
	s := newSocket(fd, netip.AddrPortFrom(address.Addr().Unmap(), address.Port()), netip.AddrPort{})
	if err = s.connect(ctx); err == nil {
		var errno syscall.Errno
		if s.served, errno = sysLocal(fd); errno != 0 {
			err = os.NewSyscallError("getsockname", errno)
		}
	}
	if err == nil && s.served == s.remote {
		err = errSelf
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openTCP makes a socket that does not block and sends at once.
func openTCP(to netip.Addr) (int, error) {
	family := unix.AF_INET
	if to.Is6() && !to.Is4In6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if errno := sysSet(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); errno != 0 {
		unix.Close(fd)
		return -1, os.NewSyscallError("setsockopt", errno)
	}
	return fd, nil
}

// connect connects the socket. On one machine the other end has responded when the call
// returns, so the result is checked before waiting.
func (s *Socket) connect(ctx context.Context) error {
	errno := sysConnect(s.fd, s.remote)
	if errno == syscall.EINPROGRESS {
		errno = sysConnect(s.fd, s.remote)
	}
	switch errno {
	case 0, syscall.EISCONN:
		return nil
	case syscall.EINPROGRESS, syscall.EALREADY, syscall.EINTR:
		return s.awaitConnect(ctx)
	}
	return os.NewSyscallError("connect", errno)
}

// awaitConnect waits until the peer has answered, or ctx has ended.
func (s *Socket) awaitConnect(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		s.SetWriteDeadline(end)
	}
	stop := context.AfterFunc(ctx, func() { s.SetWriteDeadline(struck) })
	var failed error
	err := (*rawSocket)(s).Write(func(fd uintptr) bool {
		var done bool
		done, failed = hasConnected(int(fd))
		return done
	})
	switch {
	case !stop(): // the func may set its deadline still
		return ctx.Err()
	case err != nil:
		return err
	}
	s.SetWriteDeadline(time.Time{})
	return failed
}

// hasConnected reports whether a connect has come to an end, and how.
func hasConnected(fd int) (bool, error) {
	errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return true, os.NewSyscallError("getsockopt", err)
	case errno != 0:
		return true, os.NewSyscallError("connect", syscall.Errno(errno))
	}
	if _, err = unix.Getpeername(fd); err != nil {
		return false, nil // a wake-up too many
	}
	return true, nil
}
