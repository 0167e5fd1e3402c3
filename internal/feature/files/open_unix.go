//go:build unix

package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFlags open a file without waiting for a writer of a pipe, and without making a
// terminal that of the process.
const openFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// maxOpen returns how many files may be open at once: a quarter of the limit of the process.
func maxOpen() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return maxOpenFiles
	}
	return int64(min(max(uint64(limit.Cur)/4, minOpenFiles), maxOpenFiles))
}
