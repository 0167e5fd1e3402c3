package h2

import (
	"encoding/binary"
	"errors"

	"headgate/internal/front/section"
	"headgate/internal/proto/http2"
)

// maxUpdates is how many priorities are kept for streams that are not open yet.
const maxUpdates = 16

// update is the priority of a stream that is not open yet.
type update struct {
	id      uint32
	urgency uint8
	rotates bool
}

// prioritise sets the priority of a stream from the response's field, as the
// server may know it better than the client (RFC 9218, section 8).
func (s *stream) prioritise(text string) {
	urgency, rotates := section.Priority(text)
	s.conn.mu.Lock()
	s.setPriority(urgency, rotates)
	s.conn.mu.Unlock()
}

// setPriority changes the place of a stream. conn.mu is held.
func (s *stream) setPriority(urgency uint8, rotates bool) {
	q := &s.conn.mu.queue
	waits := s.piece.queued
	q.remove(s)
	s.urgency, s.rotates, s.signalled = urgency, rotates, true
	if waits {
		q.add(s)
	}
}

// onPriority checks a PRIORITY frame and ignores it, as the scheme of RFC 7540 is
// deprecated (RFC 9113, sections 5.3.2 and 6.3).
func (c *Conn) onPriority(h http2.Frame, p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case h.Stream == 0:
		return broken(http2.ProtocolError, "PRIORITY on stream 0 (RFC 9113, section 6.3)")
	case len(p) != http2.PrioritySize:
		s := c.stream(h.Stream)
		if s == nil {
			return broken(http2.FrameSizeError, "PRIORITY of a size other than 5 (RFC 9113, section 6.3)")
		}
		c.resetLocked(s, http2.FrameSizeError, errors.New("PRIORITY of a size other than 5"))
		return c.offend()
	case binary.BigEndian.Uint32(p)&http2.MaxWindow == h.Stream:
		return broken(http2.ProtocolError, "a stream that depends on itself (RFC 7540, section 5.3.1)")
	}
	return c.chargeLocked(floodPriority)
}

// onPriorityUpdate handles a new priority for a stream that is open or will be
// (RFC 9218, section 7.1).
func (c *Conn) onPriorityUpdate(h http2.Frame, p []byte) error {
	switch {
	case h.Stream != 0:
		return broken(http2.ProtocolError, "PRIORITY_UPDATE on a stream (RFC 9218, section 7.1)")
	case len(p) < 4:
		return broken(http2.FrameSizeError, "PRIORITY_UPDATE of less than 4 bytes (RFC 9218, section 7.1)")
	}
	id := binary.BigEndian.Uint32(p) & http2.MaxWindow
	if id == 0 || id&1 == 0 {
		return broken(http2.ProtocolError, "PRIORITY_UPDATE for a stream that no client can open (RFC 9218, section 7.1)")
	}
	urgency, rotates := section.Priority(string(p[4:]))
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stream(id); s != nil {
		s.setPriority(urgency, rotates)
	} else if id > c.mu.lastID {
		c.noteUpdate(update{id, urgency, rotates})
	}
	return c.chargeLocked(floodPriority)
}

// noteUpdate keeps the priority of a stream that is not open yet. The oldest is
// forgotten when there are too many. c.mu is held.
func (c *Conn) noteUpdate(u update) {
	for i := range c.mu.updates {
		if c.mu.updates[i].id == u.id {
			c.mu.updates[i] = u
			return
		}
	}
	if len(c.mu.updates) == maxUpdates {
		c.mu.updates = append(c.mu.updates[:0], c.mu.updates[1:]...)
	}
	c.mu.updates = append(c.mu.updates, u)
}

// takeUpdate applies the priority that arrived before a stream was opened. It
// overrides the one in the request. c.mu is held.
func (c *Conn) takeUpdate(s *stream) {
	kept := c.mu.updates[:0]
	for _, u := range c.mu.updates {
		switch {
		case u.id == s.id:
			s.urgency, s.rotates, s.signalled = u.urgency, u.rotates, true
		case u.id > s.id:
			kept = append(kept, u)
		}
	}
	c.mu.updates = kept
}
