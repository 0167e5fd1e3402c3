//go:build unix

package history

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayWrite returns why a file cannot be written.
func mayWrite(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// mayWriteFolder returns why no file can be made in a folder.
func mayWriteFolder(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// isReadOnly reports whether an error says that nothing can be written to a file system.
func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }

// replaceable reports whether another file can take the place of one: it has one name
// only, and is ours or we may give files to its owner.
func replaceable(_ string, info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink == 1 && (os.Geteuid() == 0 || int(sys.Uid) == os.Geteuid())
}

// giveOwner gives a file the owner and group of another.
func giveOwner(f *os.File, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if err != nil || !ok {
		return err
	}
	if have, ok := info.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
