package netconn

// WriteNow sends p at once, past what is collected: a caller uses either this or
// Write. Each wait for a writable socket is bounded by the write wait. p is not
// kept.
func (c *Conn) WriteNow(p []byte) error {
	_, err := c.writeNow(p)
	return err
}

// Append adds a copy of p to the unused bytes. It is for a caller that waited
// for the first bytes in memory of its own; b must be empty.
func (b *Buffer) Append(p []byte) { b.w += copy(b.space(), p) }
