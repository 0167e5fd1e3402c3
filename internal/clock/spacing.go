package clock

import (
	"sync/atomic"
	"time"
)

// Spacing lets one of many calls through in each interval, such as for lines of the log or for
// looks at a file. The zero value lets the first call through. It may be used by several
// goroutines at once, and must not be copied.
type Spacing struct {
	// Last is when a call was let through last, by Now; 0 is never.
	Last atomic.Int64
}

// Due reports whether the interval has passed at a moment since the last call that was let
// through, and notes the moment if so. One of several concurrent calls is let through.
func (s *Spacing) Due(now int64, interval time.Duration) bool {
	last := s.Last.Load()
	return (last == 0 || now-last >= int64(interval)) && s.Last.CompareAndSwap(last, now)
}
