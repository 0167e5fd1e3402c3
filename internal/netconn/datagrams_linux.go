//go:build linux && !race && (amd64 || arm64)

package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// datagramCalls reads several datagrams with one system call and sends with another,
// neither of which involves the scheduler: they return at once. The only allocation is
// the address of a peer that was not seen lately.
type datagramCalls struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	wide bool // the socket is one of IPv6, to which IPv4 addresses are mapped

	// owned by the goroutine that reads
	in datagramBatch
}

// maxBatch is how many datagrams are read at once at most.
const maxBatch = 8

// datagramBatch contains the arguments and results of one read.
type datagramBatch struct {
	heads [maxBatch]messageHead
	parts [maxBatch]syscall.Iovec
	from  [maxBatch]syscall.RawSockaddrInet6 // large enough for both address families
	n     int
	errno syscall.Errno
	fn    func(uintptr) bool
	count int // capacity in messages
	flags int

	peers [256]knownPeer
}

// messageHead is struct mmsghdr.
type messageHead struct {
	syscall.Msghdr
	len uint32
	_   [4]byte
}

// knownPeer is an address in the form of the kernel and in that of net.
type knownPeer struct {
	at   syscall.RawSockaddrInet6
	addr *net.UDPAddr
}

// init readies the calls for a socket.
func (d *datagramCalls) init(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	family := 0
	if cerr := raw.Control(func(fd uintptr) { family, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN) }); cerr != nil || err != nil {
		return errors.Join(cerr, err)
	}
	d.conn, d.raw, d.wide = c, raw, family == unix.AF_INET6
	d.in.fn = d.in.read
	return nil
}

// read is ReadBatch that returns every error.
func (d *datagramCalls) read(ms []ipv4.Message, flags int) (int, error) {
	in := &d.in
	in.count, in.flags = min(len(ms), maxBatch), flags
	for i := range ms[:in.count] {
		m, part, h := &ms[i], &in.parts[i], &in.heads[i]
		part.Base, part.Len = unsafe.SliceData(m.Buffers[0]), uint64(len(m.Buffers[0]))
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&in.from[i])), uint32(unsafe.Sizeof(in.from[i]))
		h.Iov, h.Iovlen = part, 1
		h.Control, h.Controllen = unsafe.SliceData(m.OOB), uint64(len(m.OOB))
	}
	if err := d.raw.Read(in.fn); err != nil {
		return 0, err
	}
	if in.errno != 0 {
		return 0, &net.OpError{Op: "read", Net: "udp", Source: d.conn.LocalAddr(), Err: os.NewSyscallError("recvmmsg", in.errno)}
	}
	for i := range in.n {
		h := &in.heads[i]
		ms[i].N, ms[i].NN, ms[i].Flags = int(h.len), int(h.Controllen), int(h.Flags)
		ms[i].Addr = in.peer(&in.from[i])
	}
	return in.n, nil
}

// read reads once, and reports whether it has a result.
func (in *datagramBatch) read(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&in.heads)), uintptr(in.count), uintptr(in.flags), 0, 0)
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			in.n, in.errno = int(n), 0
		default:
			in.n, in.errno = 0, errno
		}
		return true
	}
}

// peer returns the address of a peer. Recent addresses are cached, so that the caller must
// not change it.
func (in *datagramBatch) peer(at *syscall.RawSockaddrInet6) *net.UDPAddr {
	sum := uint32(at.Port)
	if at.Family == syscall.AF_INET {
		sum ^= at.Flowinfo * 0x9e3779b1 // where the address of IPv4 lies
	} else {
		sum ^= *(*uint32)(unsafe.Pointer(&at.Addr[12])) * 0x9e3779b1
	}
	known := &in.peers[(sum^sum>>8^sum>>16)%uint32(len(in.peers))]
	if known.addr == nil || known.at != *at {
		known.at, known.addr = *at, udpAddr(at)
	}
	return known.addr
}

// udpAddr makes an address of the kernel's.
func udpAddr(at *syscall.RawSockaddrInet6) *net.UDPAddr {
	from := sockaddr(at)
	addr := &net.UDPAddr{Port: int(from.Port())}
	if at.Family == syscall.AF_INET {
		addr.IP = from.Addr().Unmap().AsSlice()
		return addr
	}
	addr.IP = append(addr.IP, at.Addr[:]...)
	if at.Scope_id != 0 {
		addr.Zone = strconv.Itoa(int(at.Scope_id))
		if i, err := net.InterfaceByIndex(int(at.Scope_id)); err == nil {
			addr.Zone = i.Name
		}
	}
	return addr
}

// sending is one write. It is kept for the next one.
type sending struct {
	head  syscall.Msghdr
	part  syscall.Iovec
	to    syscall.RawSockaddrInet6 // large enough for both address families
	n     int
	errno syscall.Errno
	fn    func(uintptr)
}

var sendings = sync.Pool{New: func() any {
	s := &sending{}
	s.fn = s.send
	return s
}}

// write sends b. If the socket is full it waits up to sendPatience.
func (d *datagramCalls) write(b, oob []byte, to *net.UDPAddr) error {
	s := sendings.Get().(*sending)
	defer sendings.Put(s)
	if len(b) == 0 || !s.address(to, d.wide) {
		return d.writeSlowly(b, oob, to)
	}
	s.part.Base, s.part.Len = unsafe.SliceData(b), uint64(len(b))
	s.head.Iov, s.head.Iovlen = &s.part, 1
	s.head.Control, s.head.Controllen = unsafe.SliceData(oob), uint64(len(oob))
	err := d.raw.Control(s.fn)
	s.part.Base, s.head.Control = nil, nil
	switch {
	case err != nil:
		return err
	case s.errno == syscall.EAGAIN:
		return d.writeSlowly(b, oob, to)
	case s.errno != 0:
		return &net.OpError{Op: "write", Net: "udp", Source: d.conn.LocalAddr(), Addr: to, Err: os.NewSyscallError("sendmsg", s.errno)}
	case s.n != len(b):
		return io.ErrShortWrite
	}
	return nil
}

// writeSlowly sends b through package net. All writes that wait for a writable socket
// share one deadline: a later one extends the wait of the others.
func (d *datagramCalls) writeSlowly(b, oob []byte, to *net.UDPAddr) error {
	d.conn.SetWriteDeadline(time.Now().Add(sendPatience))
	_, _, err := d.conn.WriteMsgUDP(b, oob, to)
	return err
}

// send sends once.
func (s *sending) send(fd uintptr) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&s.head)), syscall.MSG_NOSIGNAL)
		if errno == syscall.EINTR {
			continue
		}
		s.n, s.errno = int(n), errno
		return
	}
}

// address sets where to send. It reports false for an address that only net knows how to
// reach: one with a zone, or of IPv6 on a socket of IPv4.
func (s *sending) address(to *net.UDPAddr, wide bool) bool {
	four := to.IP.To4()
	switch {
	case to.Zone != "" || len(to.IP) == 0 || four == nil && !wide:
		return false
	case wide:
		s.to = syscall.RawSockaddrInet6{Family: syscall.AF_INET6}
		copy(s.to.Addr[:], to.IP.To16())
		setNetworkOrder(&s.to.Port, uint16(to.Port))
		s.head.Namelen = syscall.SizeofSockaddrInet6
	default:
		at := (*syscall.RawSockaddrInet4)(unsafe.Pointer(&s.to))
		*at = syscall.RawSockaddrInet4{Family: syscall.AF_INET}
		copy(at.Addr[:], four)
		setNetworkOrder(&at.Port, uint16(to.Port))
		s.head.Namelen = syscall.SizeofSockaddrInet4
	}
	s.head.Name = (*byte)(unsafe.Pointer(&s.to))
	return true
}
