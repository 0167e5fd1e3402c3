package udp

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// datagrams holds memory for one datagram each, while it is on its way from a
// server to a client.
var datagrams = sync.Pool{New: func() any { b := make([]byte, maxDatagram); return &b }}

// socket is the socket that clients send to. For one that listens on all
// addresses, the kernel reports the destination of each datagram, and answers are
// sent from that address: clients reject an answer from another.
type socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	six  bool   // it is of IPv6, if only for IPv4 in its clothes
	told []byte // buffer for control messages from the kernel; nil if they are not needed
}

func newSocket(conn *net.UDPConn) *socket {
	s := &socket{conn: conn}
	s.raw, _ = conn.SyscallConn()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	s.six = local.Is6() && !local.Is4In6()
	if !local.IsUnspecified() || s.raw == nil {
		return s
	}
	s.told = make([]byte, 128)
	s.raw.Control(func(fd uintptr) {
		if s.six {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			return
		}
		unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	})
	return s
}

// receive waits for a datagram. local is the destination address as reported by
// the kernel; it is valid until the next call.
func (s *socket) receive(p []byte) (n int, from netip.AddrPort, local []byte, err error) {
	n, told, _, from, err := s.conn.ReadMsgUDPAddrPort(p, s.told)
	return n, from, s.told[:told], err
}

// replyTo returns the control message for an answer, made from that of the
// datagram.
func replyTo(told []byte) []byte {
	if len(told) == 0 {
		return nil
	}
	all, err := unix.ParseSocketControlMessage(told)
	if err != nil {
		return nil
	}
	for _, m := range all {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[4:8])})
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: [16]byte(m.Data[:16])})
		}
	}
	return nil
}

// destination returns the address that a datagram was sent to; told are its control
// messages.
func (s *socket) destination(told []byte) netip.AddrPort {
	at := s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	all, _ := unix.ParseSocketControlMessage(told) // none of a socket with an address
	for _, m := range all {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Data[8:12])), at.Port())
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(m.Data[:16])), at.Port())
		}
	}
	return at
}

// link is the path of a session to its server and back to its client. It never
// waits for a full socket, and holds no memory while idle.
type link struct {
	server syscall.RawConn
	client syscall.RawConn
	to     unix.Sockaddr // of the client
	local  []byte        // where answers come from, for the kernel

	announce []byte // goes before each datagram to the server

	out    []byte // on its way to the server
	outErr error
	sendFn func(uintptr) bool

	use    func([]byte)
	inErr  error
	recvFn func(uintptr) bool

	back    []byte // on its way to the client
	backErr error
	backFn  func(uintptr) bool
}

// open readies the way between a socket and a connection to a server.
func (l *link) open(s *socket, conn *net.UDPConn, client netip.AddrPort, told []byte) {
	l.server, _ = conn.SyscallConn()
	l.client = s.raw
	l.local = replyTo(told)
	if s.six {
		l.to = &unix.SockaddrInet6{Addr: client.Addr().As16(), Port: int(client.Port()), ZoneId: zone(client.Addr().Zone())}
	} else {
		l.to = &unix.SockaddrInet4{Addr: client.Addr().Unmap().As4(), Port: int(client.Port())}
	}
	l.sendFn, l.recvFn, l.backFn = l.onSend, l.onReceive, l.onBack
}

// zone returns the number of an interface.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(name); err == nil {
		return uint32(i.Index)
	}
	return 0
}

// send passes a datagram to the server. One goroutine at a time calls it.
func (l *link) send(p []byte) error {
	l.out = p
	if err := l.server.Write(l.sendFn); err != nil {
		return err
	}
	return l.outErr
}

func (l *link) onSend(fd uintptr) bool {
	if l.announce == nil {
		l.outErr = unix.Send(int(fd), l.out, unix.MSG_DONTWAIT)
		return true
	}
	_, l.outErr = unix.SendmsgBuffers(int(fd), [][]byte{l.announce, l.out}, nil, nil, unix.MSG_DONTWAIT)
	return true
}

// receive waits for a datagram of the server and shows it to use.
func (l *link) receive(use func([]byte)) error {
	l.use = use
	if err := l.server.Read(l.recvFn); err != nil {
		return err
	}
	return l.inErr
}

func (l *link) onReceive(fd uintptr) bool {
	p := datagrams.Get().(*[]byte)
	defer datagrams.Put(p)
	n, err := unix.Read(int(fd), *p)
	if err == unix.EAGAIN || err == unix.EINTR {
		return false
	}
	if l.inErr = err; err == nil {
		l.use((*p)[:n])
	}
	return true
}

// answer sends a datagram to the client. One goroutine at a time calls it.
func (l *link) answer(p []byte) error {
	l.back = p
	if err := l.client.Write(l.backFn); err != nil {
		return err
	}
	return l.backErr
}

func (l *link) onBack(fd uintptr) bool {
	_, l.backErr = unix.SendmsgN(int(fd), l.back, l.local, l.to, unix.MSG_DONTWAIT)
	return true
}
