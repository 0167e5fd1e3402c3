package netconn

import (
	"time"

	"headgate/internal/clock"
)

// How long is waited for what was received to be delivered before a reset is passed on.
const (
	// deliverStall is how long nothing may move meanwhile, in nanoseconds.
	deliverStall = int64(5 * time.Second)
	// The pauses between two looks double from the first to the last.
	firstLook = time.Millisecond / 4
	lastLook  = 50 * time.Millisecond
)

// Await waits until done reports true, and stops when moved, which changes with each
// progress, has not changed for some seconds. Resets are rare: polling costs less than a
// notification on every connection.
func Await(done func() bool, moved func() int64) {
	seen, since := moved(), clock.Now()
	for pause := firstLook; !done(); pause = min(2*pause, lastLook) {
		time.Sleep(pause)
		if m := moved(); m != seen {
			seen, since = m, clock.Now()
		} else if clock.Now()-since > deliverStall {
			return
		}
	}
}

// AwaitDelivery waits until the peer has acknowledged all that was sent, has closed the
// connection, or has received nothing for some seconds. A reset before that would lose
// what the peer has not received. Concurrent calls are allowed.
func (c *Conn) AwaitDelivery() {
	below := c.belowTLS()
	if below.raw == nil {
		return
	}
	done := func() bool { return below.unsent() == 0 || below.isClosed() }
	Await(done, func() int64 { return int64(below.unsent()) })
}
