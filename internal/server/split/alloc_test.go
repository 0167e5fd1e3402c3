//go:build !race

package split

import (
	"testing"
	"time"
)

func TestCountingAllocatesNothing(t *testing.T) {
	l := NewLive()
	l.SetShare(50)
	n := testing.AllocsPerRun(100, func() { l.Observe(l.Of(7), false, time.Millisecond) })
	if n != 0 {
		t.Errorf("%g allocations for each request, want 0", n)
	}
}
