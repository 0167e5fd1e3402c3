package h3

import "net/netip"

// Idle returns whose connection it is, and since when no request is under way on it.
// Any goroutine may call it.
func (c *Conn) Idle() (client netip.Addr, since int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts.Remote.Addr(), c.mu.quiet, c.mu.running == 0 && (!c.mu.last || c.mu.held)
}

// Yield closes the connection for another if no request has been in progress since the
// time that Idle returned, and reports whether it does. Concurrent calls are allowed.
func (c *Conn) Yield(since int64) bool {
	c.mu.Lock()
	if c.mu.running > 0 || c.mu.last && !c.mu.held || c.mu.quiet != since {
		c.mu.Unlock()
		return false
	}
	c.mu.last = true
	c.mu.Unlock()
	c.quic.CloseWithError(noError.wire(), "")
	return true
}
