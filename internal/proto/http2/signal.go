package http2

import "time"

// Signal wakes the one goroutine that waits for news of a stream. News that come
// while nobody waits are kept, as one. Raise may be called by many goroutines at
// once, everything else by the one that waits.
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

// Lower forgets news that nobody has waited for, and reports whether there were any.
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
