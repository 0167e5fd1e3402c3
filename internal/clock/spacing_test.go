package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestSpacingLetsOneCallThroughInEachInterval(t *testing.T) {
	var s Spacing
	const start, interval = int64(7), time.Second
	for _, c := range []struct {
		after time.Duration
		due   bool
	}{{0, true}, {0, false}, {interval - 1, false}, {interval, true}, {interval, false}, {2*interval - 1, false}, {5 * interval, true}} {
		if got := s.Due(start+int64(c.after), interval); got != c.due {
			t.Errorf("after %v: due %v, want %v", c.after, got, c.due)
		}
	}
	var through atomic.Int32
	var all sync.WaitGroup
	var many Spacing
	for range 16 {
		all.Go(func() {
			for range 1000 {
				if many.Due(start, interval) {
					through.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := through.Load(); n != 1 {
		t.Errorf("%d calls at one moment were let through, want 1", n)
	}
}
