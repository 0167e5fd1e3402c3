package netconn

import (
	"errors"
	"syscall"
)

// sysPeek looks at a socket without taking anything from it.
func sysPeek(fd uintptr) syscall.Errno {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	if n == 0 {
		return errClosed
	}
	return 0
}
