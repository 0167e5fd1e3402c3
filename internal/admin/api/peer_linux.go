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
