//go:build unix && !solaris && !aix

package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// errLocked is the error of tryLock when another process has the lock.
const errLocked = unix.EWOULDBLOCK

// tryLock locks a file for this process, which the system undoes at its end.
func tryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
