package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// tuneMemory sets a memory limit a tenth below that of the control group, unless
// the environment sets one (GOMEMLIMIT): it keeps a container from being killed
// before the collector was asked.
func tuneMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		if group := memoryLimit(os.DirFS("/")); group < math.MaxInt64 {
			debug.SetMemoryLimit(group / 10 * 9)
		}
	}
}

// memoryLimit returns the smallest memory limit of the process's control group
// and those around it (cgroup v2), in bytes; math.MaxInt64 without any, and on
// systems other than Linux.
func memoryLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for at := path.Join("sys/fs/cgroup", group); strings.HasPrefix(at, "sys/fs/cgroup"); at = path.Dir(at) {
			text, err := fs.ReadFile(root, path.Join(at, "memory.max"))
			if err != nil {
				continue
			}
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
	}
	return limit
}
