//go:build unix

package docker

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owners says who may use a file.
func owners(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "belongs to another user"
	}
	uid, gid := strconv.FormatUint(uint64(s.Uid), 10), strconv.FormatUint(uint64(s.Gid), 10)
	name, group := uid, gid
	if u, err := user.LookupId(uid); err == nil {
		name = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		group = g.Name
	}
	return fmt.Sprintf("belongs to user %s and group %s (%s)", name, group, gid)
}

// ourselves says as whom this process runs.
func ourselves() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil && u.Username != uid {
		return "user " + u.Username + " (" + uid + ")"
	}
	return "user " + uid
}
