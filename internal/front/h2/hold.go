package h2

// hold delays a client that floods on connection after connection, unless the connection is
// closed for another, drains, or is closed.
func (c *Conn) hold() {
	c.buf.Drop()
	c.mu.Lock()
	over := make(chan struct{})
	c.mu.held = over
	if c.mu.yielded || c.mu.Err != nil || c.draining.Load() {
		c.releaseLocked()
	}
	c.mu.Unlock()
	c.front.Clients.Delay(over)
}

// releaseLocked ends the wait of a connection that is held.
func (c *Conn) releaseLocked() {
	if c.mu.held != nil {
		close(c.mu.held)
		c.mu.held = nil
	}
}
