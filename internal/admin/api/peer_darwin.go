package api

import "golang.org/x/sys/unix"

// processOf returns the process at the other end of a socket.
func processOf(fd int, _ *unix.Xucred) (int, error) {
	return unix.GetsockoptInt(fd, 0 /* SOL_LOCAL */, unix.LOCAL_PEERPID)
}
