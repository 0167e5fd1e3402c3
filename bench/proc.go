//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parentOf reads the process id and its parent's from /proc/PID/stat. The name
// in parentheses may hold anything, parentheses too.
func parentOf(stat string) (pid, parent int, ok bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return 0, 0, false
	}
	rest := strings.Fields(stat[end+1:])
	if len(rest) < 2 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(rest[1])
	return pid, parent, err == nil
}

// treeOf returns a process and all below it, in order.
func treeOf(root int, parents map[int]int) []int {
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		for pid, parent := range parents {
			if parent == tree[i] && !slices.Contains(tree, pid) {
				tree = append(tree, pid)
			}
		}
	}
	slices.Sort(tree)
	return tree
}

// residentOf reads the resident memory from /proc/PID/status, in bytes. A process
// that has ended and was not waited for has none.
func residentOf(status string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		words := strings.Fields(rest)
		if len(words) != 2 || words[1] != "kB" {
			return 0, fmt.Errorf("resident memory: %q", line)
		}
		n, err := strconv.ParseInt(words[0], 10, 64)
		return n << 10, err
	}
	return 0, nil
}

// waitsOf reads how often a thread has waited from its status.
func waitsOf(status string) int64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64) // the kernel writes it
			return n
		}
	}
	return 0
}

// cpuModel reads the processor's name from /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// kernelVersion returns a kernel's version without what its builder added.
func kernelVersion(release string) string {
	version, _, _ := strings.Cut(release, "-")
	return version
}
