package main

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestMemoryLimitIsTheSmallestOfTheControlGroups(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, test := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no control groups", fstest.MapFS{}, math.MaxInt64},
		{"no limit", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, math.MaxInt64},
		{"in a container", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1000\n")}, 1000},
		{"around the unit", fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/headgate.service\n"),
			"sys/fs/cgroup/system.slice/headgate.service/memory.max": file("max\n"),
			"sys/fs/cgroup/system.slice/memory.max":                  file("2000\n"),
		}, 2000},
	} {
		if got := memoryLimit(test.root); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
