// Package clock tells the moments of the data path: cheap, monotonic, and the
// same for every package, so that a deadline made in one can be held in another.
package clock

import (
	"context"
	"time"
)

// epoch is when the process started; its monotonic reading is what counts.
var epoch = time.Now()

// Now returns nanoseconds since the process started, plus one so that zero can
// stand for "never". It is monotonic; the wall clock is not read.
func Now() int64 { return int64(time.Since(epoch)) + 1 }

// At returns the wall clock time of a moment that Now returned.
func At(moment int64) time.Time { return epoch.Add(time.Duration(moment - 1)) }

// Sleep waits, and reports whether the time passed before ctx ended.
func Sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
