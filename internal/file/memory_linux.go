package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// Memory returns a file that has no name and ends with its last descriptor.
func Memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("headgate", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "file in memory"), nil
}
