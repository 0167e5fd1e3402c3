//go:build darwin || freebsd

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
		var c *unix.Xucred
		if c, failed = unix.GetsockoptXucred(int(fd), 0 /* SOL_LOCAL */, unix.LOCAL_PEERCRED); failed == nil {
			uid = int(c.Uid)
			pid, failed = processOf(int(fd), c)
		}
	})
	if err == nil {
		err = failed
	}
	return uid, pid, err
}
