package client

import (
	"runtime"
	"sync"
)

// outMost is how many bytes are collected before bodies have to wait, queueMost
// how many of what does not wait, and outKeep how large a buffer is kept.
const (
	outMost   = 64 << 10
	queueMost = 256 << 10
	outKeep   = 128 << 10
)

var (
	outs = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}
	// boxes holds the boxes of slices, so that giving one back allocates nothing.
	boxes = sync.Pool{New: func() any { return new([]byte) }}
)

// space returns the collected bytes, to append to. c.mu is held.
func (c *Conn) space() []byte {
	if c.mu.out == nil {
		box := outs.Get().(*[]byte)
		c.mu.out = (*box)[:0]
		*box = nil
		boxes.Put(box)
	}
	return c.mu.out
}

func giveOut(b []byte) {
	if b == nil || cap(b) > outKeep {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = b
	outs.Put(box)
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
		giveOut(b)
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
	for _, s := range c.mu.streams {
		if s.blocked {
			s.wakeSender()
		}
	}
}
