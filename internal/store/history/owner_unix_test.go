//go:build unix

package history_test

import (
	"io/fs"
	"syscall"
)

// ownerOf returns user and group of a file.
func ownerOf(info fs.FileInfo) [2]uint32 {
	sys := info.Sys().(*syscall.Stat_t)
	return [2]uint32{sys.Uid, sys.Gid}
}
