//go:build !linux

// Command management measures what the management API costs. It reads what a process uses
// from /proc, which this system does not have.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "management: it measures on Linux only")
	os.Exit(1)
}
