//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// actAsOwner makes root the user that a state directory belongs to, until back is called:
// what root writes there could not be read by a headgate that runs as another user.
// Others stay who they are.
func actAsOwner(dir string) (back func(), err error) {
	back = func() {}
	if os.Geteuid() != 0 {
		return back, nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return back, nil // it is made, and belongs to root
	}
	if err != nil {
		return back, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return back, nil
	}
	group := os.Getegid()
	back = func() {
		_ = syscall.Seteuid(0) // it was root, which is kept as the real user
		_ = syscall.Setegid(group)
	}
	if err = syscall.Setegid(int(owner.Gid)); err == nil {
		err = syscall.Seteuid(int(owner.Uid))
	}
	if err != nil {
		back()
		return func() {}, fmt.Errorf("switch to user %d, the owner of %s: %w", owner.Uid, dir, err)
	}
	return back, nil
}
