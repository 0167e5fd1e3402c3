//go:build linux && (race || !(amd64 || arm64))

package netconn

import (
	"errors"
	"syscall"
)

// In race builds, and where recv and send are no calls of their own, the calls
// go through package syscall, which tells the race detector that what one end
// wrote happened before the other end read it.

func sysRead(fd uintptr, p []byte) (int, syscall.Errno) { return sysCall(syscall.Read, fd, p) }

func sysWrite(fd uintptr, p []byte) (int, syscall.Errno) { return sysCall(syscall.Write, fd, p) }

// sysWriteBoth writes a, and b once there is no a left.
func sysWriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	if len(a) > 0 {
		return sysWrite(fd, a)
	}
	return sysWrite(fd, b)
}

func sysCall(call func(int, []byte) (int, error), fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), p)
		var errno syscall.Errno
		if errors.As(err, &errno) {
			if errno == syscall.EINTR {
				continue
			}
			return 0, errno
		}
		return n, 0
	}
}
