package h2

import "headgate/internal/proto/http2"

// Streams with data to send wait in a queue until it was moved into the buffer of the
// connection. The order is that of RFC 9218: by urgency, and within one urgency either one
// stream after the other or in turns. A stream without a priority is sent in turns.

const (
	urgencies      = 8
	defaultUrgency = 3
)

// fairShare is how often the stream that has waited longest goes first, whatever its
// urgency: once in so many frames. It prevents starvation.
const fairShare = 16

// queue holds the waiting streams, by urgency. Those that are not sent in turns come
// first, in the order of their numbers.
type queue struct {
	lists [urgencies]struct{ first, last *stream }
	size  int
}

// add puts a stream where it belongs.
func (q *queue) add(s *stream) {
	s.piece.queued = true
	q.size++
	l := &q.lists[s.urgency]
	var before *stream // s goes in front of it
	if !s.rotates {
		for before = l.first; before != nil && !before.rotates && before.id < s.id; {
			before = before.piece.next
		}
	}
	s.piece.next = before
	if before != nil {
		s.piece.prev, before.piece.prev = before.piece.prev, s
	} else {
		s.piece.prev, l.last = l.last, s
	}
	if s.piece.prev != nil {
		s.piece.prev.piece.next = s
	} else {
		l.first = s
	}
}

// remove removes a stream, if it is in.
func (q *queue) remove(s *stream) {
	if !s.piece.queued {
		return
	}
	q.size--
	l := &q.lists[s.urgency]
	if s.piece.prev != nil {
		s.piece.prev.piece.next = s.piece.next
	} else {
		l.first = s.piece.next
	}
	if s.piece.next != nil {
		s.piece.next.piece.prev = s.piece.prev
	} else {
		l.last = s.piece.prev
	}
	s.piece.queued, s.piece.next, s.piece.prev = false, nil, nil
}

// first returns some stream that waits, or nil.
func (q *queue) first() *stream {
	for i := range q.lists {
		if s := q.lists[i].first; s != nil {
			return s
		}
	}
	return nil
}

// pick returns the stream whose turn it is among those that can send, or nil.
// c.mu is held.
func (c *Conn) pick() *stream {
	if c.mu.queue.size == 0 {
		return nil
	}
	c.mu.ticks++
	fair := c.mu.ticks%fairShare == 0
	var longest *stream
	for i := range c.mu.queue.lists {
		for s := c.mu.queue.lists[i].first; s != nil; s = s.piece.next {
			if !s.canSend() {
				continue
			}
			if !fair {
				return s
			}
			if longest == nil || s.piece.tick-longest.piece.tick > 1<<31 {
				longest = s
			}
		}
	}
	return longest
}

// canSend reports whether the windows let a stream send something.
func (s *stream) canSend() bool {
	return s.piece.head != nil || len(s.piece.data) == 0 || s.window > 0 && s.conn.mu.window > 0
}

// fill moves data of streams into the buffer while it has space. c.mu is held.
func (c *Conn) fill() {
	for len(c.mu.Out) < maxOut && c.mu.Err == nil {
		s := c.pick()
		if s == nil {
			return
		}
		c.move(s)
	}
}

// move moves the next frame of a stream.
func (c *Conn) move(s *stream) {
	p := &s.piece
	p.tick = c.mu.ticks
	if p.head != nil {
		c.moveHead(s)
		if len(p.data) == 0 {
			c.moved(s)
			return
		}
	}
	// A window may be below zero (RFC 9113, section 6.9.2). A frame without content
	// needs none (section 6.9).
	n := max(0, min(int64(len(p.data)), http2.MaxFrameSize, s.window, c.mu.window))
	if n == 0 && len(p.data) > 0 {
		return
	}
	flags := uint8(0)
	if p.end && int(n) == len(p.data) {
		flags = http2.FlagEndStream
		s.local = true
	}
	c.mu.Out = http2.AppendFrame(c.mu.Space(), int(n), http2.FrameData, flags, s.id)
	c.mu.Out = append(c.mu.Out, p.data[:n]...)
	s.window -= n
	c.mu.window -= n
	if int(n) == len(p.data) || n >= http2.MaxFrameSize/16 {
		// A frame that is small because of the client's window is not useful
		// work.
		c.mu.budget.refund(floodWindow, 3)
		c.mu.budget.refund(floodPing, 1)
	}
	if p.data = p.data[n:]; len(p.data) == 0 {
		c.moved(s)
	} else if s.rotates {
		c.mu.queue.remove(s)
		c.mu.queue.add(s)
	}
}

// moveHead moves the field block of a stream.
func (c *Conn) moveHead(s *stream) {
	p := &s.piece
	end := p.end && len(p.data) == 0
	c.appendBlock(s.id, p.head, end)
	p.head = nil
	s.local = s.local || end
}

// appendBlock appends a field block. c.mu is held.
//
// The encoder never uses the dynamic table. A client that reduces its size requires a table
// size update in the next block nevertheless (RFC 9113, section 4.3.1): it sets the size to
// 0.
func (c *Conn) appendBlock(id uint32, block []byte, end bool) {
	prefix := byte(0)
	if c.mu.resize {
		c.mu.resize, prefix = false, http2.TableSizeZero
	}
	c.mu.Out = http2.AppendBlock(c.mu.Space(), id, prefix, block, end)
}

// moved notes that all a stream had to send is in the buffer.
func (c *Conn) moved(s *stream) {
	c.mu.queue.remove(s)
	if s.local {
		c.useful()
		if s.remote {
			c.closeLocked(s, false)
		}
	}
	s.wake.Raise()
}
