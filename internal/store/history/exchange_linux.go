package history

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange lets two files change their names in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// isUnsupported reports whether the file system knows no exchange.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// isBusy reports whether a name cannot be renamed over: a file that was mounted into a
// container by itself.
func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) }
