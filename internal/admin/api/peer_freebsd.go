package api

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoProcess says that a system before FreeBSD 13 does not tell processes.
var errNoProcess = errors.New("the system does not tell which process is at the other end")

// processOf returns the process at the other end of a socket. It stands in the last
// word of struct xucred (cr_pid, sys/ucred.h), for which there is no name in Go. Where it
// is not told nobody is trusted: it might be ourselves, for others.
func processOf(_ int, c *unix.Xucred) (int, error) {
	const last = unsafe.Sizeof(*c) - unsafe.Sizeof(uintptr(0))
	if pid := *(*int32)(unsafe.Add(unsafe.Pointer(c), last)); pid > 0 {
		return int(pid), nil
	}
	return 0, errNoProcess
}
