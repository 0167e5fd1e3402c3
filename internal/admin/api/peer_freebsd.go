package api

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoProcess is returned by systems before FreeBSD 13, which report no process.
var errNoProcess = errors.New("the system does not report which process is at the other end")

// processOf returns the process at the other end of a socket. It is the last word of struct
// xucred (cr_pid, sys/ucred.h), which has no name in Go. Without it the peer is not
// trusted, because it could be this process, proxying for a client.
func processOf(_ int, c *unix.Xucred) (int, error) {
	const last = unsafe.Sizeof(*c) - unsafe.Sizeof(uintptr(0))
	if pid := *(*int32)(unsafe.Add(unsafe.Pointer(c), last)); pid > 0 {
		return int(pid), nil
	}
	return 0, errNoProcess
}
