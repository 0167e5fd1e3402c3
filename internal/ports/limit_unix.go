//go:build unix

package ports

import "golang.org/x/sys/unix"

// spareFiles is how many file descriptors are kept for everything but
// connections.
const spareFiles = 64

// connectionLimit returns how many connections of clients all ports together may
// have, so that as many descriptors are left for connections to servers; 0 if
// the system sets no limit. Ports share it evenly.
func connectionLimit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	const unlimited = 1 << 30
	if uint64(limit.Cur) > unlimited {
		return 0
	}
	return max((int(limit.Cur)-spareFiles)/2, 16)
}
