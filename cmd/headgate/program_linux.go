package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram removes pages of the program from the process's memory if they cannot have
// been modified. They stay in the page cache, from which the kernel maps those that are
// used again: more than half is code and tables for startup and other commands.
func releaseProgram() {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if begin, end, ok := programPages(line, name); ok {
			// An error only means that the pages stay.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED)
		}
	}
}

// programPages returns where a line of /proc/self/maps has pages of the program that
// cannot be written to.
func programPages(line, name string) (begin, end uintptr, ok bool) {
	var mode, offset, device, file string
	var inode uint64
	n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %d %s", &begin, &end, &mode, &offset, &device, &inode, &file)
	ok = n == 7 && file == name && end > begin && (mode == "r-xp" || mode == "r--p")
	return begin, end, ok
}
