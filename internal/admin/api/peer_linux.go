package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// KnowsPeers reports whether the system identifies the peer of a socket.
const KnowsPeers = true

// peerOfSocket returns the user and process that opened the other end, as reported by the
// kernel.
func peerOfSocket(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var c *unix.Ucred
		if c, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed == nil {
			uid, pid = int(c.Uid), int(c.Pid)
		}
	})
	if err == nil {
		err = failed
	}
	return uid, pid, err
}
