//go:build darwin || freebsd

package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID asks the kernel whose process opened the other end.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	uid := 0
	var failed error
	err = raw.Control(func(fd uintptr) {
		var c *unix.Xucred
		if c, failed = unix.GetsockoptXucred(int(fd), 0 /* SOL_LOCAL */, unix.LOCAL_PEERCRED); failed == nil {
			uid = int(c.Uid)
		}
	})
	if err == nil {
		err = failed
	}
	return uid, err
}
