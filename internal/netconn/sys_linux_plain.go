//go:build linux && (race || !(amd64 || arm64))

package netconn

import (
	"errors"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// In race builds, and where recv and send are not separate system calls, the
// calls go through package syscall, which informs the race detector that what
// one end wrote happened before the other end read it.

func sysRead(fd uintptr, p []byte) (int, syscall.Errno) { return sysCall(syscall.Read, fd, p) }

// sysPeek looks at a socket without taking anything from it.
func sysPeek(fd uintptr) syscall.Errno {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	if errno, ok := err.(syscall.Errno); ok { // errors.As would allocate
		return errno
	}
	if n == 0 {
		return errClosed
	}
	return 0
}

func sysWrite(fd uintptr, p []byte) (int, syscall.Errno) { return sysCall(syscall.Write, fd, p) }

// sysWriteMore is sysWrite: what comes behind p follows in a packet of its own.
func sysWriteMore(fd uintptr, p []byte) (int, syscall.Errno) { return sysWrite(fd, p) }

// sysWriteBoth writes a, and b once there is no a left.
func sysWriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	if len(a) > 0 {
		return sysWrite(fd, a)
	}
	return sysWrite(fd, b)
}

func sysCall(call func(int, []byte) (int, error), fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), p)
		var errno syscall.Errno
		if errors.As(err, &errno) {
			if errno == syscall.EINTR {
				continue
			}
			return 0, errno
		}
		return n, 0
	}
}

// sysEpoll returns how many events an epoll descriptor has, without waiting.
func sysEpoll(fd uintptr, events []unix.EpollEvent) int {
	n, _ := unix.EpollWait(int(fd), events, 0)
	return max(n, 0)
}

// sysRemind adds to the counter of an eventfd.
func sysRemind(fd int, count []byte) { _, _ = syscall.Write(fd, count) }

// sysClose closes a descriptor without waiters.
func sysClose(fd int) error { return os.NewSyscallError("close", syscall.Close(fd)) }

// sysConnect starts to connect a socket, or returns the result.
func sysConnect(fd int, to netip.AddrPort) syscall.Errno {
	if addr := to.Addr().Unmap(); addr.Is4() {
		return errnoOf(unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: addr.As4()}))
	}
	return errnoOf(unix.Connect(fd, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}))
}

// sysLocal returns the address that a socket has on our side.
func sysLocal(fd int) (netip.AddrPort, syscall.Errno) {
	sa, err := unix.Getsockname(fd)
	return addrPortOf(sa), errnoOf(err)
}

// sysSet sets an option of a socket.
func sysSet(fd, level, option int, value int32) syscall.Errno {
	return errnoOf(unix.SetsockoptInt(fd, level, option, int(value)))
}

// sysShutdown ends our side of a stream.
func sysShutdown(fd int) syscall.Errno { return errnoOf(unix.Shutdown(fd, unix.SHUT_WR)) }

// errnoOf returns the number of an error of the system.
func errnoOf(err error) (errno syscall.Errno) {
	errors.As(err, &errno)
	return errno
}

// addrPortOf returns an address of the system, an IPv4-mapped one as IPv4.
func addrPortOf(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// sysAccept accepts a connection from the queue of a listening socket.
func sysAccept(fd uintptr) accepted {
	for {
		n, from, err := unix.Accept4(int(fd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		var errno syscall.Errno
		switch {
		case err == nil:
			return accepted{fd: n, remote: addrPortOf(from)}
		case errors.As(err, &errno) && errno == syscall.EINTR:
			continue
		}
		return accepted{errno: errno}
	}
}
