package exchange

import "headgate/internal/clock"

// Now returns the moment in nanoseconds by the clock of the data path; it is
// never zero, which stands for "not yet".
func Now() int64 { return clock.Now() }
