//go:build unix && !solaris && !aix

package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns another descriptor of the same open file, with the same lock.
func duplicate(f *os.File) (dup *os.File, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, errno := -1, error(nil)
	if err := raw.Control(func(n uintptr) { fd, errno = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if errno != nil {
		return nil, os.NewSyscallError("fcntl", errno)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
