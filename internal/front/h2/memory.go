package h2

import "headgate/internal/front/clients"

// lyingAtOnce is how much memory is taken for bodies at once, in bytes.
const lyingAtOnce = 64 << 10

// What the clients of the socket may hold is asked before a request begins and
// before much of a body is kept.

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
func (c *Conn) keep(lying int64) bool {
	if lying <= c.lying+lyingAtOnce {
		return true
	}
	if !c.member.Take(2*lyingAtOnce, c.memory()) {
		return false
	}
	c.lying += 2 * lyingAtOnce
	return true
}

// yield gives memory back that is not needed any more.
func (c *Conn) yield() {
	c.mu.Lock()
	running, lying := c.mu.Active, c.lyingLocked()
	c.mu.Unlock()
	if spare := c.places - running; spare > 0 {
		c.places = running
		c.member.GivePlaces(spare)
	}
	if c.lying > 0 && lying <= lyingAtOnce {
		c.member.Give(c.lying)
		c.lying = 0
	}
}

// lyingLocked returns how many bytes of bodies lie here, about.
func (c *Conn) lyingLocked() int64 { return connWindow - c.mu.receive - c.mu.consumed }
