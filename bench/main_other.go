//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: processes are pinned and measured by Linux's means; run it there")
	os.Exit(2)
}
