package main

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"headgate/internal/netconn"
)

// startGrowth is the heap growth between collections during startup, in percent. Objects
// that are built then stay, together with the free space that garbage leaves between them:
// more frequent collections leave less of it.
const startGrowth = 40

// usualGrowth is the heap growth between collections after startup, in percent (GOGC).
const usualGrowth = 100

// tuneMemory sets a memory limit a tenth below that of the control group, unless the
// environment sets one (GOMEMLIMIT). It prevents that a container is killed before the
// garbage collector runs. Until settleMemory, it also limits the growth of the heap, unless
// the environment sets it (GOGC).
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		if group := memoryLimit(os.DirFS("/")); group < math.MaxInt64 {
			debug.SetMemoryLimit(group / 10 * 9)
		}
	}
}

// halveMemory halves the memory limit of a process that was replaced: the new one needs
// its part. What it returns reverts that.
func halveMemory() (restore func()) {
	limit := debug.SetMemoryLimit(-1)
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 2)
	}
	growth := debug.SetGCPercent(usualGrowth / 2)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(growth)
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

// tidyEvery is how often memory is checked. A change in the number of goroutines or parked
// connections since the last collection by both tidyChange and a fraction of all triggers a
// collection.
const (
	tidyEvery  = 3 * time.Second
	tidyChange = 1000
	tidyPart   = 8
)

// settleAfter is how long after the first configuration was applied the memory is given
// back that only the start needed: what begins with it has begun then.
const settleAfter = time.Second

// tidyMemory collects garbage after startup, and after many connections were opened, closed
// or became idle. An idle connection needs little memory, but its stack shrinks, and its
// buffers are freed, only in a collection; an idle process has none for two minutes. The
// same applies to what a change of the configuration replaces. When changes cease, free
// memory is returned to the system: the runtime would keep as much as is in use. applied is
// closed when the first configuration was applied; changes returns the number of changes.
// It returns when ctx ends.
func tidyMemory(ctx context.Context, applied <-chan struct{}, changes func() uint64) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	var settle <-chan time.Time
	goroutines, parked := runtime.NumGoroutine(), netconn.NumParked()
	again, changed := false, changes()
	for {
		select {
		case <-ctx.Done():
			return
		case <-applied:
			applied, settle = nil, time.After(settleAfter)
			continue
		case <-settle:
			settle, changed = nil, changes()
			settleMemory()
			continue
		case <-tick.C:
		}
		g, p, n := runtime.NumGoroutine(), netconn.NumParked(), changes()
		switch {
		case n != changed: // more changes may follow
			changed, again = n, true
		case isOther(g, goroutines) || isOther(p, parked):
			runtime.GC()
			goroutines, parked, again = g, p, true
		case again:
			debug.FreeOSMemory() // pools are emptied by the second collection
			again = false
		}
	}
}

// isOther reports whether a count differs so much from what it was that memory is worth
// a look.
func isOther(now, before int) bool {
	return max(now-before, before-now) > max(tidyChange, before/tidyPart)
}

// settleMemory returns to the system the memory that only startup needed: parsed texts, and
// pages of the program.
func settleMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(usualGrowth)
	}
	debug.FreeOSMemory()
	releaseProgram()
}
