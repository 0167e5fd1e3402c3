package netconn

import (
	"math"
	"time"

	"headgate/internal/clock"
)

// recheck is how long a wait may rest on an edge alone. An edge can carry both
// the last bytes and the end of a stream; one more read after this time finds
// the end.
const recheck = 3 * time.Second

// quietFirst is the time after which a new connection is first checked: most send a
// few bytes at the start and are then idle for long, and stacks that are released
// early serve the next connections. Later the time is recheck, so that a connection
// with traffic every second is not parked each time. It is also how long a wait
// continues after the first check, before the connection is parked.
const quietFirst = 200 * time.Millisecond

// A watch is called after lookFirst of a wait, then after pauses that double
// up to maxLook.
const (
	lookFirst = 500 * time.Millisecond
	maxLook   = 2 * time.Second
)

// struck is a deadline that has passed: it makes a wait end at once.
var struck = clock.At(1)

// arm makes sure that a wait that starts now ends in time, and does nothing for
// one in progress. Usually a deadline that is early enough is set already.
func (c *Conn) arm() {
	if c.until != 0 {
		return
	}
	if c.first == early {
		c.unwatch() // a busy one shall not be watched twice
	}
	c.first = waited
	c.rd.late = false
	c.setEnd()
	if c.near && c.armed != 0 && c.armed <= c.until {
		return
	}
	first := recheck
	if c.gap = 0; c.watch != nil {
		first = lookFirst
	}
	if c.rd.leaves && !c.rested {
		first = quietFirst
	}
	c.near = true
	c.setDeadline(min(c.until, clock.Now()+int64(first)))
}

// setEnd sets the end of the wait that starts now.
func (c *Conn) setEnd() {
	switch {
	case c.readUntil != 0:
		c.until = c.readUntil
	case c.readWait > 0:
		c.until = clock.Now() + int64(c.readWait)
	default:
		c.until = math.MaxInt64
	}
}

// isQuiet reports, after a deadline has struck, whether the wait under way is to be
// given up. A deadline that was set before the wait may strike at its beginning, so the
// first one only sets another, soon: a connection that is busy is not parked.
func (c *Conn) isQuiet() bool {
	if !c.rd.leaves || c.until == 0 || c.rd.struck {
		return c.rd.leaves && c.until != 0
	}
	c.rd.struck, c.rested = true, true
	c.setDeadline(min(c.until, clock.Now()+int64(quietFirst)))
	return false
}

// nextLook returns when a wait that goes on has to be looked at again.
func (c *Conn) nextLook(now int64) int64 {
	if c.watch == nil {
		return c.until
	}
	c.gap = min(max(2*c.gap, lookFirst), maxLook)
	return min(c.until, now+int64(c.gap))
}

func (c *Conn) setDeadline(moment int64) {
	c.armed = moment
	if moment == math.MaxInt64 {
		c.armed = 0
		c.clearDeadline()
		return
	}
	c.nc.SetReadDeadline(clock.At(moment))
	if c.kicked.Load() {
		// Kick came between: its deadline must not be lost under ours.
		c.nc.SetReadDeadline(struck)
	}
}

// expired decides what a deadline that struck means: nil if the wait goes on.
func (c *Conn) expired() error {
	c.armed, c.near = 0, false
	if c.takeKick() {
		c.clearDeadline()
		return ErrKicked
	}
	if c.until == 0 {
		// It expired without a waiter, left over from an earlier wait.
		c.clearDeadline()
		return nil
	}
	now := clock.Now()
	if now >= c.until {
		return c.timedOut(now)
	}
	if c.watch != nil {
		if err := c.watch(); err == ErrSoon {
			c.gap = 0
		} else if err != nil {
			c.clearDeadline()
			return err
		}
	}
	c.setDeadline(c.nextLook(now))
	return nil
}

// lateWait is how long a read may go on, under TLS, that has found bytes when its time was
// over: they need not be all of a record.
const lateWait = time.Second

// timedOut ends a wait whose time is over, unless there is something to read: then nil,
// and the read goes on. Both may be so after a time in which the process did not run,
// since the machine was busy, or stood still. What the peer sent in time is not lost then.
func (c *Conn) timedOut(now int64) error {
	if c.rd.late || c.Silent() {
		c.clearDeadline()
		return ErrTimeout
	}
	if c.raw != nil {
		c.until = 0 // what is there ends the wait
		c.clearDeadline()
		return nil
	}
	c.rd.late = true
	c.until = now + int64(lateWait)
	c.setDeadline(c.until)
	return nil
}

// clearDeadline clears a deadline that has expired, but not one set by Kick.
func (c *Conn) clearDeadline() {
	c.nc.SetReadDeadline(time.Time{})
	if c.kicked.Load() {
		c.nc.SetReadDeadline(struck)
	}
}
