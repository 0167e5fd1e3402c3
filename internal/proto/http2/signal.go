package http2

import "time"

// Signal wakes the one goroutine that waits for changes of a stream. Signals without a
// waiter are kept, as one. Raise is safe for concurrent use, the other methods belong to
// the waiting goroutine.
type Signal struct {
	raised chan struct{}
	timer  *time.Timer // made when it is first needed
}

// NewSignal returns a signal that is not raised.
func NewSignal() Signal { return Signal{raised: make(chan struct{}, 1)} }

// Raise wakes who waits, or who waits next.
func (s *Signal) Raise() {
	select {
	case s.raised <- struct{}{}:
	default:
	}
}

// Lower clears a signal that was not waited for, and reports whether there was one.
func (s *Signal) Lower() bool {
	select {
	case <-s.raised:
		return true
	default:
		return false
	}
}

// Wait waits for news, at most for limit unless that is 0, and reports whether there
// were any.
func (s *Signal) Wait(limit time.Duration) bool {
	if limit <= 0 {
		<-s.raised
		return true
	}
	if s.timer == nil {
		s.timer = time.NewTimer(limit)
	} else {
		s.timer.Reset(limit)
	}
	select {
	case <-s.raised:
		s.timer.Stop()
		return true
	case <-s.timer.C:
		return false
	}
}
