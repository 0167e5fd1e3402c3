package h2

import (
	"sync/atomic"
	"time"
)

// holdTime is how long a client that floods us on connection after connection waits
// for the end of one. Nothing of it is read meanwhile: what it sends fills the buffers
// of the system and then stops it, which is cheaper than to have it come again at once.
const holdTime = time.Second

// maxHeld is how many connections of one socket are held at once; others are closed.
const maxHeld = 128

// holds counts the connections that are held.
type holds struct{ n atomic.Int32 }

// take takes one of the places, if one is free.
func (h *holds) take() bool {
	if h.n.Add(1) <= maxHeld {
		return true
	}
	h.n.Add(-1)
	return false
}

// hold waits for holdTime, or until the connection makes room for another, is told to
// drain, or is closed.
func (c *Conn) hold() {
	if !c.front.held.take() {
		return
	}
	defer c.front.held.n.Add(-1)
	c.buf.Drop()
	c.dismiss(0)
	c.mu.Lock()
	over := make(chan struct{})
	c.mu.held = over
	if c.mu.yielded || c.mu.Err != nil || c.draining.Load() {
		c.releaseLocked()
	}
	c.mu.Unlock()
	late := time.NewTimer(holdTime)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

// releaseLocked ends the wait of a connection that is held.
func (c *Conn) releaseLocked() {
	if c.mu.held != nil {
		close(c.mu.held)
		c.mu.held = nil
	}
}
