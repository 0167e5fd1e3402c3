package h1

import "net/netip"

// yielded is the idle time of a connection that was closed for another.
const yielded = -1

// Idle returns whose connection it is, and since when it has no request under way: one
// whose head has not come whole is not under way yet. Any goroutine may call it.
func (c *Conn) Idle() (client netip.Addr, since int64, ok bool) {
	since = c.idle.Load()
	return c.facts.Remote.Addr(), since, since > 0
}

// Yield closes the connection if it has been idle since the moment that Idle returned,
// and reports whether it does. One whose client has sent something that is not read yet, on
// a machine that is busy, stays. Any goroutine may call it.
func (c *Conn) Yield(since int64) bool {
	if !c.nc.Silent() || !c.idle.CompareAndSwap(since, yielded) {
		return false
	}
	c.Close()
	return true
}

// since notes since when the connection has been waiting for the rest of a head.
func (c *Conn) since(moment int64) {
	if before := c.idle.Load(); before != yielded {
		c.idle.CompareAndSwap(before, moment)
	}
}
