package h2

import (
	"fmt"
	"runtime"

	"headgate/internal/proto/http2"
)

// outMost is how many bytes are collected before streams have to wait, and
// queueMost how many may be collected of what does not wait: answers to PING and
// SETTINGS, resets.
const (
	outMost   = 32 << 10
	queueMost = 256 << 10
	outKeep   = 64 << 10
)

// rounds is how often one stream writes before another takes its turn.
const rounds = 4

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
	if c.mu.running > 1 {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.write(rounds)
	c.mu.Unlock()
}

// write writes what is collected, at most so many times, and passes on what is
// left. c.mu is held, but not while writing.
func (c *Conn) write(most int) {
	for ; most > 0 && len(c.mu.out) > 0 && c.mu.err == nil; most-- {
		b := c.mu.out
		c.mu.out = nil
		c.mu.Unlock()
		err := c.nc.WriteNow(b)
		http2.GiveOut(b, outKeep)
		c.mu.Lock()
		if err != nil {
			c.failLocked(fmt.Errorf("write to the client: %w", err))
			break
		}
		c.fill()
	}
	c.mu.writing = false
	if c.mu.written != nil {
		close(c.mu.written)
		c.mu.written = nil
	}
	if len(c.mu.out) > 0 && c.mu.err == nil {
		if s := c.mu.queue.first(); s != nil {
			s.wake.Raise()
		} else {
			c.give(nil)
		}
	}
}

// seal lets nothing more be collected, ends all streams, and waits until what was
// collected is written.
func (c *Conn) seal(why error) {
	c.mu.Lock()
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.gone == nil {
			s.gone = errLeft(why)
		}
		s.lookUp()
	}
	for c.mu.err == nil {
		if c.mu.writing {
			done := make(chan struct{})
			c.mu.written = done
			c.mu.Unlock()
			<-done
			c.mu.Lock()
			continue
		}
		if len(c.mu.out) == 0 {
			break
		}
		c.mu.writing = true
		c.write(1 << 30)
	}
	c.mu.Unlock()
}

// lastWrite returns why the connection cannot be written to, or nil.
func (c *Conn) lastWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// fail ends the connection at once.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.failLocked(err)
	c.mu.Unlock()
	// TLS said goodbye before, if it was to; its own Close might wait for a client
	// that does not read.
	c.socket.Close()
}

// failLocked lets nothing more be sent and wakes everyone who waits. The reader
// notices by the close of the connection, which follows when it is kicked.
func (c *Conn) failLocked(err error) {
	if c.mu.err != nil {
		return
	}
	c.mu.err = errLeft(err)
	http2.GiveOut(c.mu.out, outKeep)
	c.mu.out = nil
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.gone == nil {
			s.gone = c.mu.err
		}
		s.lookUp()
	}
	c.nc.Kick()
}
