//go:build darwin || freebsd

package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// KnowsPeers says whether the system tells who is at the other end of a socket.
const KnowsPeers = true

// peerOfSocket asks the kernel which process opened the other end, and whose that is.
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
