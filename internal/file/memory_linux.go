package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns a file that has no name and ends with its last descriptor.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("headgate-state", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "state in memory"), nil
}
