package testhouse

import (
	"net"

	"golang.org/x/sys/unix"
)

// Received reports whether the peer of a connection has received all that was sent to it,
// and whether the system can report that.
func Received(c *net.TCPConn) (all, known bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false, false
	}
	left := -1
	_ = raw.Control(func(fd uintptr) { // fails once it is closed
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			left = n
		}
	})
	return left == 0, left >= 0
}
