package exchange

import (
	"time"

	"headgate/internal/clock"
)

// Now returns the moment in nanoseconds by the clock of the data path; it is
// never zero, which stands for "not yet".
func Now() int64 { return clock.Now() }

// At returns the wall clock time of a moment that Now returned.
func At(moment int64) time.Time { return clock.At(moment) }
