//go:build unix

package local

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// isFull reports whether an error is that of a disk or a quota that is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// isReadOnly reports whether an error is that of a file system mounted read-only.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// ownerHelp says who owns a directory and who we are.
func ownerHelp(dir string) string {
	if info, err := os.Stat(dir); err == nil {
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
			return fmt.Sprintf("it belongs to user %d and headgate runs as user %d: chown it", sys.Uid, os.Geteuid())
		}
	}
	return "make it writable for the user that headgate runs as"
}
