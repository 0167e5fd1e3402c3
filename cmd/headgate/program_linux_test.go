package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"
)

func TestProgramPagesAreThoseNobodyCanHaveWrittenTo(t *testing.T) {
	const name = "/usr/bin/headgate"
	for _, c := range []struct {
		line       string
		begin, end uintptr
	}{
		{"00400000-017f9000 r-xp 00000000 fd:00 1311 /usr/bin/headgate\n", 0x400000, 0x17f9000},
		{"017f9000-02e5b000 r--p 013f9000 fd:00 1311                     /usr/bin/headgate\n", 0x17f9000, 0x2e5b000},
		{"02e5b000-02f10000 rw-p 02a5b000 fd:00 1311 /usr/bin/headgate\n", 0, 0},
		{"02e5b000-02f10000 r--s 02a5b000 fd:00 1311 /usr/bin/headgate\n", 0, 0},
		{"7f00-7f10 r-xp 00000000 fd:00 1311 /usr/lib/libc.so.6\n", 0, 0},
		{"00400000-017f9000 r-xp 00000000 fd:00 1311 /usr/bin/headgate (deleted)\n", 0x400000, 0x17f9000},
		{"c000000000-c004000000 rw-p 00000000 00:00 0\n", 0, 0},
		{"7ffd000-7ffe000 r-xp 00000000 00:00 0 [vdso]\n", 0, 0},
		{"", 0, 0},
	} {
		begin, end, ok := programPages(c.line, name)
		if ok != (c.end > 0) || ok && (begin != c.begin || end != c.end) {
			t.Errorf("%q: %x to %x, %v; want %x to %x", c.line, begin, end, ok, c.begin, c.end)
		}
	}
}

func TestProgramGivesPagesBackAndGoesOn(t *testing.T) {
	before := ofFiles(t)
	releaseProgram()
	if after := ofFiles(t); after >= before {
		t.Errorf("%d KiB of files in memory, %d before", after, before)
	}
}

// ofFiles returns how much memory of this process is that of files, in KiB.
func ofFiles(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(bytes.TrimSpace(status))
	if m == nil {
		t.Skip("the system does not tell")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}
