package h2

import (
	"runtime"

	"headgate/internal/proto/http2"
)

// outMost is how many bytes are collected before bodies have to wait, queueMost
// how many of what does not wait, and outKeep how large a buffer is kept.
const (
	outMost   = 64 << 10
	queueMost = 256 << 10
	outKeep   = 128 << 10
)

// space returns the collected bytes, to append to. c.mu is held.
func (c *Conn) space() []byte {
	if c.mu.out == nil {
		c.mu.out = http2.TakeOut()
	}
	return c.mu.out
}

// flush writes what is collected, unless another goroutine is at it and does it
// for us. Others that have something to send at this moment get to add it first:
// one write for all of them.
func (c *Conn) flush() {
	c.mu.Lock()
	if c.mu.writing || len(c.mu.out) == 0 || c.mu.err != nil {
		c.mu.Unlock()
		return
	}
	c.mu.writing = true
	if c.mu.reserved > 1 {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.write()
	c.mu.Unlock()
}

// flushAside has what is collected written by another goroutine. c.mu is held.
func (c *Conn) flushAside() {
	if c.mu.writing || c.mu.err != nil {
		return
	}
	c.mu.writing = true
	go func() {
		c.mu.Lock()
		c.write()
		c.mu.Unlock()
	}()
}

// write writes what is collected until nothing is. c.mu is held, but not while
// writing.
func (c *Conn) write() {
	for len(c.mu.out) > 0 && c.mu.err == nil {
		b := c.mu.out
		c.mu.out = nil
		c.mu.Unlock()
		err := c.nc.WriteNow(b)
		http2.GiveOut(b, outKeep)
		c.mu.Lock()
		if err != nil {
			c.failLocked(err)
			break
		}
		if c.mu.blocked > 0 {
			c.wakeSenders()
		}
	}
	c.mu.writing = false
}

// wakeSenders has all streams that wait to send look again. c.mu is held.
func (c *Conn) wakeSenders() {
	if c.mu.blocked == 0 {
		return
	}
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.blocked {
			s.wakeUp.Raise()
		}
	}
}
