//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// actAsOwner makes root the user that a state directory belongs to, for the rest of the
// process: what root writes there could not be read by a headgate that runs as another
// user. Others stay who they are.
func actAsOwner(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made, and belongs to root
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	if err = syscall.Setgroups([]int{int(owner.Gid)}); err == nil {
		err = syscall.Setgid(int(owner.Gid))
	}
	if err == nil {
		err = syscall.Setuid(int(owner.Uid))
	}
	if err != nil {
		return fmt.Errorf("become user %d, to whom %s belongs: %w", owner.Uid, dir, err)
	}
	return nil
}
