package h3

// hold ends a connection whose client floods on connection after connection: nothing
// more is read from it, and it is closed late. It reports false otherwise.
func (c *Conn) hold(rule *connError) bool {
	if rule.flood == "" || !c.offends && !c.member.Offender() {
		return false
	}
	c.mu.Lock()
	c.mu.last, c.mu.held = true, true
	c.mu.Unlock()
	c.workers.Go(func() {
		c.front.Clients.Delay(c.quic.Context().Done())
		c.quic.CloseWithError(rule.code.wire(), rule.text)
	})
	return true
}

// isHeld reports whether nothing more is read from the client.
func (c *Conn) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.held
}
