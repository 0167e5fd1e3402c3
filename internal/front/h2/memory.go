package h2

import "headgate/internal/front/clients"

// bufferedAtOnce is the memory that is reserved for bodies at once, in bytes.
const bufferedAtOnce = 64 << 10

// The limits for the clients of the socket are checked before a request starts and before
// much of a body is kept.

func (c *Conn) memory() clients.Limits {
	return clients.Limits{Total: c.port.MaxMemory, Each: c.port.MaxClientMemory}
}

// room reports whether there is memory for one request more than run.
func (c *Conn) room(running int) bool {
	if running < c.places {
		return true
	}
	n := c.member.TakePlaces(c.places, c.memory())
	c.places += n
	return n > 0
}

// keep reports whether there is memory for what lies here of bodies. What fits into
// the windows that a client has at first is part of its requests' memory.
func (c *Conn) keep(buffered int64) bool {
	if buffered <= c.buffered+bufferedAtOnce {
		return true
	}
	if !c.member.Reserve(2*bufferedAtOnce, c.memory()) {
		return false
	}
	c.buffered += 2 * bufferedAtOnce
	return true
}

// yield releases memory that is no longer needed.
func (c *Conn) yield() {
	c.mu.Lock()
	running, buffered := c.mu.Active, c.bufferedLocked()
	c.mu.Unlock()
	if spare := c.places - running; spare > 0 {
		c.places = running
		c.member.GivePlaces(spare)
	}
	if c.buffered > 0 && buffered <= bufferedAtOnce {
		c.member.Release(c.buffered)
		c.buffered = 0
	}
}

// bufferedLocked returns how many bytes of bodies lie here, about.
func (c *Conn) bufferedLocked() int64 { return connWindow - c.mu.receive - c.mu.consumed }
