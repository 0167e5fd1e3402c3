package netconn

import (
	"net"
	"syscall"
	"time"
)

// await shows decide what is there to read, without reading it, until it is
// content; at the end of the stream it is shown what there is once.
func await(nc net.Conn, within time.Duration, decide func([]byte) error, p []byte) bool {
	raw := rawOf(nc)
	if raw == nil {
		return true
	}
	nc.SetReadDeadline(time.Now().Add(within))
	defer nc.SetReadDeadline(time.Time{})
	seen := -1
	err := raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		if err != nil || n <= 0 {
			return true
		}
		if n == seen {
			return isHungUp(fd) // nothing new: an end, or a look too many
		}
		seen = n
		return decide(p[:n]) == nil
	})
	return err == nil
}
