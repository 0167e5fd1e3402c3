package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryOfAReplacedProcess holds that a process that was replaced has half of its memory
// limit, and all of it when it serves again.
func TestMemoryOfAReplacedProcess(t *testing.T) {
	limit, growth := debug.SetMemoryLimit(-1), debug.SetGCPercent(usualGrowth)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(growth)
	})
	for before, want := range map[int64]int64{1 << 40: 1 << 39, math.MaxInt64: math.MaxInt64} {
		debug.SetMemoryLimit(before)
		restore := halveMemory()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("limit %d: got %d while replaced, want %d", before, got, want)
		}
		restore()
		if got := debug.SetMemoryLimit(-1); got != before {
			t.Errorf("limit %d: got %d afterwards", before, got)
		}
		if got := debug.SetGCPercent(usualGrowth); got != usualGrowth {
			t.Errorf("GC percent: got %d afterwards, want %d", got, usualGrowth)
		}
	}
}
