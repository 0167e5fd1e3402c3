//go:build linux && !race && (amd64 || arm64)

package netconn

import (
	"encoding/binary"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The sockets are non-blocking, so these calls return at once and need not
// involve the scheduler: that saves about 0.1 µs each. recv and send have a
// shorter path in the kernel than read and write.

func sysRead(fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
}

// sysPeek looks at a socket without taking anything from it: 0 if there are bytes, errClosed
// at the end of the stream. It is called for each request on a server connection that has
// rested, so it must not involve the scheduler: in a process that was idle, a call that does
// wakes the runtime's monitor thread, which then runs every 20 µs for a millisecond.
func sysPeek(fd uintptr) syscall.Errno {
	var b [1]byte
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), uintptr(len(b)), syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return errno
		case n == 0:
			return errClosed
		}
		return 0
	}
}

func sysWrite(fd uintptr, p []byte) (int, syscall.Errno) { return sysSend(fd, p, syscall.MSG_NOSIGNAL) }

// sysWriteMore is sysWrite when more comes at once: what does not fill a packet waits
// for it.
func sysWriteMore(fd uintptr, p []byte) (int, syscall.Errno) {
	return sysSend(fd, p, syscall.MSG_NOSIGNAL|unix.MSG_MORE)
}

func sysSend(fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
}

// sysWriteBoth writes a and then b.
func sysWriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	if len(a) == 0 {
		return sysWrite(fd, b)
	}
	if len(b) == 0 {
		return sysWrite(fd, a)
	}
	parts := [2]syscall.Iovec{
		{Base: unsafe.SliceData(a), Len: uint64(len(a))},
		{Base: unsafe.SliceData(b), Len: uint64(len(b))},
	}
	message := syscall.Msghdr{Iov: &parts[0], Iovlen: uint64(len(parts))}
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), syscall.MSG_NOSIGNAL)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		return int(n), 0
	}
}

// sysEpoll returns how many events an epoll descriptor has, without waiting.
func sysEpoll(fd uintptr, events []unix.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// sysRemind adds to the counter of an eventfd.
func sysRemind(fd int, count []byte) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(count))), uintptr(len(count)))
}

// sysClose closes a descriptor without waiters.
func sysClose(fd int) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0); errno != 0 {
		return os.NewSyscallError("close", errno)
	}
	return nil
}

// sysConnect starts to connect a socket, or returns the result.
func sysConnect(fd int, to netip.AddrPort) syscall.Errno {
	var at syscall.RawSockaddrInet6 // large enough for both address families
	size := uintptr(syscall.SizeofSockaddrInet6)
	if addr := to.Addr().Unmap(); addr.Is4() {
		four := (*syscall.RawSockaddrInet4)(unsafe.Pointer(&at))
		four.Family, four.Addr = syscall.AF_INET, addr.As4()
		setNetworkOrder(&four.Port, to.Port())
		size = syscall.SizeofSockaddrInet4
	} else {
		at.Family, at.Addr = syscall.AF_INET6, addr.As16()
		setNetworkOrder(&at.Port, to.Port())
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&at)), size)
	return errno
}

// sysLocal returns the address that a socket has on our side.
func sysLocal(fd int) (netip.AddrPort, syscall.Errno) {
	var at syscall.RawSockaddrInet6
	size := uint32(unsafe.Sizeof(at))
	_, _, errno := syscall.RawSyscall(syscall.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)))
	return sockaddr(&at), errno
}

// sysSet sets an option of a socket.
func sysSet(fd, level, option int, value int32) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return errno
}

// sysShutdown ends our side of a stream.
func sysShutdown(fd int) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SHUTDOWN, uintptr(fd), syscall.SHUT_WR, 0)
	return errno
}

// sysAccept accepts a connection from the queue of a listening socket.
func sysAccept(fd uintptr) accepted {
	for {
		var from syscall.RawSockaddrInet6 // large enough for both address families
		size := uint32(unsafe.Sizeof(from))
		n, _, errno := syscall.RawSyscall6(syscall.SYS_ACCEPT4, fd, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)),
			syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return accepted{fd: int(n), remote: sockaddr(&from)}
		case syscall.EINTR:
			continue
		}
		return accepted{errno: errno}
	}
}

// sockaddr returns an address as the kernel writes it, an IPv4-mapped one as IPv4.
func sockaddr(from *syscall.RawSockaddrInet6) netip.AddrPort {
	switch from.Family {
	case syscall.AF_INET:
		four := (*syscall.RawSockaddrInet4)(unsafe.Pointer(from))
		return netip.AddrPortFrom(netip.AddrFrom4(four.Addr), networkOrder(&four.Port))
	case syscall.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16(from.Addr).Unmap(), networkOrder(&from.Port))
	}
	return netip.AddrPort{}
}

// networkOrder reads a number in network byte order.
func networkOrder(port *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(port))[:])
}

// setNetworkOrder writes a number in the order of the network.
func setNetworkOrder(port *uint16, value uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(port))[:], value)
}
