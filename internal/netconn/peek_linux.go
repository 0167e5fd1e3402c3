package netconn

import "syscall"

// sysPeek looks at a socket without taking anything from it.
func sysPeek(fd uintptr) syscall.Errno {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	if errno, ok := err.(syscall.Errno); ok { // errors.As would allocate
		return errno
	}
	if n == 0 {
		return errClosed
	}
	return 0
}
