package exchange

import "headgate/internal/clock"

// Now returns the time in nanoseconds of the clock of the data path; it is never zero,
// which means "not yet".
func Now() int64 { return clock.Now() }
