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

// Await waits until done reports true, and gives up once moved, which changes with each
// progress, has not changed for some seconds. Resets are rare: looking now and then costs
// less than a notice on every connection.
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

// AwaitDelivery waits until the peer has acknowledged all that was sent, has left, or has
// taken nothing for some seconds. A connection that is reset before loses what the peer
// has not received. Any goroutine may call it.
func (c *Conn) AwaitDelivery() {
	below := c.belowTLS()
	if below.raw == nil {
		return
	}
	done := func() bool { return below.unsent() == 0 || below.isClosed() }
	Await(done, func() int64 { return int64(below.unsent()) })
}
