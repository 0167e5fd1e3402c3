package netconn

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a TCP connection that was accepted or dialed without package net. It is
// registered with the runtime's poller only when a goroutine has to wait for it: a request
// that has arrived when its connection is accepted is read, answered and closed without
// that. It is a net.Conn, and behaves like a *net.TCPConn.
type Socket struct {
	// constant
	fd     int
	remote netip.AddrPort
	served netip.AddrPort // our address, if the listening socket has only one

	// state is how many use the bare descriptor, times two, and one once the socket
	// is closed. The last of them closes the descriptor then.
	state atomic.Int32
	file  atomic.Pointer[polled] // nil while the poller does not know the descriptor

	mu struct {
		sync.Mutex
		gone bool          // the descriptor is closed
		shut chan struct{} // closed then; made by a Close that waits
		// The deadlines that were set before the poller knew the descriptor.
		readBy, writeBy time.Time
	}
}

// polled is the descriptor of a socket as the poller knows it.
type polled struct {
	*os.File
	raw syscall.RawConn
}

// The parts of Socket.state.
const (
	isClosed   = 1
	oneUse     = 2
	isReleased = isClosed - 1<<30 // far from where uses could bring it
)

// socketName is the name of a socket as a file.
const socketName = "connection"

// newSocket returns the socket of a descriptor that does not block, which it owns from
// then on.
func newSocket(fd int, remote, served netip.AddrPort) *Socket {
	return &Socket{fd: fd, remote: remote, served: served}
}

// enter starts a use of the raw descriptor, and reports whether it is open.
func (s *Socket) enter() bool {
	if s.state.Add(oneUse)&isClosed == 0 {
		return true
	}
	s.leave()
	return false
}

// leave ends a use.
func (s *Socket) leave() {
	if s.state.Add(-oneUse) == isClosed && s.takeLast() {
		s.release()
	}
}

// takeLast reports, for one caller only, that the bare descriptor of a closed socket is
// unused and will not be used again: later callers find it closed.
func (s *Socket) takeLast() bool { return s.state.CompareAndSwap(isClosed, isReleased) }

// release closes the descriptor.
func (s *Socket) release() error {
	var err error
	if f := s.file.Load(); f != nil {
		err = f.Close()
	} else {
		err = sysClose(s.fd)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.gone = true
	if s.mu.shut != nil {
		close(s.mu.shut)
	}
	return err
}

// isOpen reports whether Close was not called.
func (s *Socket) isOpen() bool { return s.state.Load()&isClosed == 0 }

// Close closes the socket. Waiting calls return an error, and Close returns when no call
// uses it any more.
func (s *Socket) Close() error {
	old := s.state.Or(isClosed)
	switch {
	case old&isClosed != 0:
		return s.broken("close", net.ErrClosed)
	case old == 0 && s.takeLast():
		return s.release()
	}
	s.interrupt()
	s.mu.Lock()
	if s.mu.gone {
		s.mu.Unlock()
		return nil
	}
	shut := make(chan struct{})
	s.mu.shut = shut
	s.mu.Unlock()
	<-shut
	return nil
}

// interrupt ends the waits of a socket that is closed while a call uses the bare
// descriptor.
func (s *Socket) interrupt() {
	if f := s.file.Load(); f != nil {
		f.SetDeadline(struck)
	}
}

// poll lets the poller know the descriptor. The caller uses it.
func (s *Socket) poll() *polled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.file.Load(); f != nil {
		return f
	}
	f := &polled{File: os.NewFile(uintptr(s.fd), socketName)}
	f.raw, _ = f.SyscallConn() // fails for no file at all
	if !s.mu.readBy.IsZero() {
		f.SetReadDeadline(s.mu.readBy)
	}
	if !s.mu.writeBy.IsZero() {
		f.SetWriteDeadline(s.mu.writeBy)
	}
	s.file.Store(f)
	if !s.isOpen() {
		s.interrupt()
	}
	return f
}

// SyscallConn returns access to the descriptor.
func (s *Socket) SyscallConn() (syscall.RawConn, error) { return (*rawSocket)(s), nil }

// rawSocket is the descriptor of a Socket. Where the poller does not know it yet, a
// func of Read or Write that wants to wait is called once more before it does.
type rawSocket Socket

// Control calls fn with the descriptor.
func (r *rawSocket) Control(fn func(uintptr)) error {
	s := (*Socket)(r)
	if !s.enter() {
		return net.ErrClosed
	}
	defer s.leave()
	fn(uintptr(s.fd))
	return nil
}

// Read calls fn when there may be something to read until it returns true.
func (r *rawSocket) Read(fn func(uintptr) bool) error {
	s := (*Socket)(r)
	f := s.file.Load()
	if f == nil {
		var done bool
		var err error
		if f, done, err = s.try(fn, &s.mu.readBy); done || err != nil {
			return err
		}
	}
	return s.netError(f.raw.Read(fn))
}

// Write calls fn when the socket may be writable until it returns true.
func (r *rawSocket) Write(fn func(uintptr) bool) error {
	s := (*Socket)(r)
	f := s.file.Load()
	if f == nil {
		var done bool
		var err error
		if f, done, err = s.try(fn, &s.mu.writeBy); done || err != nil {
			return err
		}
	}
	return s.netError(f.raw.Write(fn))
}

// try calls fn with the bare descriptor. If it wants to wait, the poller gets to know
// the descriptor. by is the deadline, guarded by mu.
func (s *Socket) try(fn func(uintptr) bool, by *time.Time) (f *polled, done bool, err error) {
	if !s.enter() {
		return nil, false, net.ErrClosed
	}
	defer s.leave()
	s.mu.Lock()
	end := *by
	s.mu.Unlock()
	if !end.IsZero() && time.Until(end) <= 0 {
		return nil, false, os.ErrDeadlineExceeded
	}
	if fn(uintptr(s.fd)) {
		return nil, true, nil
	}
	return s.poll(), false, nil
}

// netError returns the error of package net for what ended a use of the descriptor.
func (s *Socket) netError(err error) error {
	if err != nil && !s.isOpen() {
		return net.ErrClosed
	}
	return err
}

// Read reads at least one byte.
func (s *Socket) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var errno syscall.Errno
	err = (*rawSocket)(s).Read(func(fd uintptr) bool {
		n, errno = sysRead(fd, p)
		return errno != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, s.broken("read", err)
	case errno != 0:
		return 0, s.broken("read", os.NewSyscallError("read", errno))
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of p.
func (s *Socket) Write(p []byte) (n int, err error) {
	var errno syscall.Errno
	err = (*rawSocket)(s).Write(func(fd uintptr) bool {
		for n < len(p) {
			var m int
			if m, errno = sysWrite(fd, p[n:]); errno != 0 {
				return errno != syscall.EAGAIN
			}
			n += m
		}
		return true
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("write", errno)
	}
	if err != nil {
		return n, s.broken("write", err)
	}
	return n, nil
}

// broken returns an error with the socket's addresses.
func (s *Socket) broken(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: s.RemoteAddr(), Err: err}
}

// AddrPorts returns the addresses of the two ends; local is the zero AddrPort if it
// is not known any more.
func (s *Socket) AddrPorts() (remote, local netip.AddrPort) {
	if s.served.IsValid() {
		return s.remote, s.served
	}
	return s.remote, s.bound()
}

// bound queries the local address.
func (s *Socket) bound() (local netip.AddrPort) {
	_ = (*rawSocket)(s).Control(func(fd uintptr) { local, _ = sysLocal(int(fd)) })
	return local
}

// RemoteAddr returns the peer's address.
func (s *Socket) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.remote) }

// LocalAddr returns our address.
func (s *Socket) LocalAddr() net.Addr {
	_, local := s.AddrPorts()
	return net.TCPAddrFromAddrPort(local)
}

// SetDeadline bounds reads and writes.
func (s *Socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads.
func (s *Socket) SetReadDeadline(t time.Time) error {
	f := s.later(t, &s.mu.readBy)
	if f == nil {
		return nil
	}
	return s.timed(f.SetReadDeadline(t))
}

// SetWriteDeadline bounds writes.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	f := s.later(t, &s.mu.writeBy)
	if f == nil {
		return nil
	}
	return s.timed(f.SetWriteDeadline(t))
}

// later keeps a deadline for when the poller knows the descriptor, unless it does.
func (s *Socket) later(t time.Time, by *time.Time) *polled {
	if f := s.file.Load(); f != nil {
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file.Load()
	if f == nil {
		*by = t
	}
	return f
}

// timed ends the setting of a deadline: it must not bring back a wait that Close has
// interrupted.
func (s *Socket) timed(err error) error {
	if s.isOpen() {
		return err
	}
	s.interrupt()
	return net.ErrClosed
}

// SetLinger says what becomes of unsent bytes when the socket is closed, as for a
// *net.TCPConn.
func (s *Socket) SetLinger(sec int) error {
	l := unix.Linger{}
	if sec >= 0 {
		l.Onoff, l.Linger = 1, int32(sec)
	}
	return s.control("setsockopt", func(fd int) (errno syscall.Errno) {
		errors.As(unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &l), &errno)
		return errno
	})
}

// SetKeepAliveConfig says how a peer that is gone without a word is found, as for a
// *net.TCPConn, which all of c is set of.
func (s *Socket) SetKeepAliveConfig(c net.KeepAliveConfig) error {
	on := int32(0)
	if c.Enable {
		on = 1
	}
	return s.control("setsockopt", func(fd int) syscall.Errno {
		return cmp.Or(sysSet(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, on),
			sysSet(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int32(c.Idle/time.Second)),
			sysSet(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int32(c.Interval/time.Second)),
			sysSet(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, int32(c.Count)))
	})
}

// CloseWrite ends our side of the stream.
func (s *Socket) CloseWrite() error {
	return s.control("shutdown", sysShutdown)
}

// control makes a call with the descriptor.
func (s *Socket) control(name string, call func(fd int) syscall.Errno) error {
	var errno syscall.Errno
	err := (*rawSocket)(s).Control(func(fd uintptr) { errno = call(int(fd)) })
	if err == nil && errno != 0 {
		err = os.NewSyscallError(name, errno)
	}
	if err != nil {
		return s.broken(name, err)
	}
	return nil
}
