package netconn

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Parked returns how many connections are parked, and whether a goroutine waits
// for them.
func Parked() (n int, watched bool) {
	parked.mu.Lock()
	defer parked.mu.Unlock()
	return len(parked.waits), parked.file != nil
}

// ReadHint reads from a socket as Flow does after some exchanges.
func ReadHint(s *Socket, p []byte) (n int, more bool, err error) {
	rerr := (*rawSocket)(s).Read(func(fd uintptr) bool {
		if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_INQ, 1); err != nil {
			return true
		}
		var errno syscall.Errno
		if n, more, errno = sysReadHint(fd, p); errno != 0 {
			err = errno
		}
		return true
	})
	return n, more, errors.Join(rerr, err)
}
