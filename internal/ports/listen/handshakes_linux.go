package listen

import (
	"encoding/binary"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hasHandshakes reports whether a port has clients whose handshake the system
// has answered, but that have not completed it. It is false if the system does
// not report that.
func hasHandshakes(port uint16) bool {
	return hasHandshakesOf(unix.AF_INET, port) || hasHandshakesOf(unix.AF_INET6, port)
}

// tableTime bounds the wait for the system's table of sockets.
const tableTime = time.Second

// hasHandshakesOf is hasHandshakes for an address family. It queries the sockets
// that ss(8) calls syn-recv (see sock_diag(7)).
func hasHandshakesOf(family uint8, port uint16) bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	late := unix.NsecToTimeval(int64(tableTime))
	if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &late) != nil {
		return false
	}
	if unix.Sendto(fd, askHandshakes(family, port), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return false
	}
	b := make([]byte, 8<<10)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return false
	}
	// A table without any starts with its end.
	messages, err := syscall.ParseNetlinkMessage(b[:n])
	return err == nil && len(messages) > 0 && messages[0].Header.Type == unix.SOCK_DIAG_BY_FAMILY
}

// askHandshakes returns the request: a struct nlmsghdr and a struct
// inet_diag_req_v2.
func askHandshakes(family uint8, port uint16) []byte {
	const (
		size     = 72
		synRecv  = 3 // TCP_SYN_RECV
		sportAt  = 24
		statesAt = 20
	)
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, size)
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[16], b[17] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[statesAt:], 1<<synRecv)
	binary.BigEndian.PutUint16(b[sportAt:], port)
	return b
}
