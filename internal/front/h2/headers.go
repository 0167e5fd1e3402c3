package h2

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/front/section"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
)

// maxPieces is how many frames a field block may have.
const maxPieces = 32

// stringSize is the longest name or value that is decoded, in bytes: more than a
// head may have, so that a head that is only too large can still be answered.
func (c *Conn) stringSize() int { return 2 * c.port.HeadSize }

// block is a field block on its way, and what was found in it.
type block struct {
	id     uint32 // of the stream, 0 if none is under way
	end    bool   // the request ends with it
	self   bool   // the stream is said to depend on itself
	mem    []byte // what came of a block in several pieces
	pieces int

	fields  section.Section
	decoded int  // bytes of names and values that were decoded
	enough  bool // no more fields are accepted
}

// onHeaders starts a field block (RFC 9113, section 6.2).
func (c *Conn) onHeaders(h http2.Frame, p []byte) error {
	if h.Stream == 0 || h.Stream&1 == 0 {
		return broken(http2.ProtocolError, "HEADERS on a stream that no client can open (RFC 9113, section 5.1.1)")
	}
	pad := 0
	if h.Flags&http2.FlagPadded != 0 {
		if len(p) == 0 {
			return broken(http2.FrameSizeError, "padded HEADERS without a pad length (RFC 9113, section 6.2)")
		}
		pad, p = int(p[0]), p[1:]
	}
	b := &c.block
	b.self = false
	if h.Flags&http2.FlagPriority != 0 {
		if len(p) < http2.PrioritySize {
			return broken(http2.FrameSizeError, "HEADERS with a priority that is not whole (RFC 9113, section 6.2)")
		}
		b.self = binary.BigEndian.Uint32(p)&http2.MaxWindow == h.Stream
		p = p[http2.PrioritySize:]
	}
	if pad > len(p) {
		return broken(http2.ProtocolError, "padding larger than the frame (RFC 9113, section 6.2)")
	}
	p = p[:len(p)-pad]
	b.end = h.Flags&http2.FlagEndStream != 0
	if h.Flags&http2.FlagEndHeaders != 0 {
		return c.endBlock(h.Stream, p)
	}
	b.id, b.pieces = h.Stream, 1
	b.mem = append(b.mem[:0], p...)
	return nil
}

// onContinuation goes on with a field block (RFC 9113, section 6.10).
func (c *Conn) onContinuation(h http2.Frame, p []byte) error {
	b := &c.block
	b.pieces++
	if b.pieces > maxPieces || len(b.mem)+len(p) > 2*c.stringSize() {
		return flooded(ContinuationFlood)
	}
	b.mem = append(b.mem, p...)
	if h.Flags&http2.FlagEndHeaders == 0 {
		return nil
	}
	id, whole := b.id, b.mem
	b.id, b.mem = 0, nil // a long block is rare: its memory is not kept
	return c.endBlock(id, whole)
}

// endBlock passes a complete field block to its stream. It is decoded in any
// case, as the state of HPACK depends on every block.
func (c *Conn) endBlock(id uint32, p []byte) error {
	c.mu.Lock()
	s := c.stream(id)
	newest, refused, running := c.mu.lastID, c.mu.refused, c.mu.Active
	full := c.mu.streams.Len() >= c.streams || c.mu.Active >= 2*c.streams
	if s == nil && id > newest && !refused {
		c.mu.lastID = id
	}
	c.mu.Unlock()
	switch {
	case s != nil:
		return c.trailers(id, p)
	case id <= newest:
		return c.lateHeaders(id, p)
	case refused:
		return c.skipBlock(p)
	case full:
		return c.refuse(id, p, true)
	case !c.room(running):
		return c.refuse(id, p, false)
	}
	return c.open(id, p)
}

// What makes a block a bomb (CVE-2016-6581): its decoded size is many times its own. The
// whole table once, and everything else in the best encoding, is far less than this.
const (
	maxInflation = 4
	maxReferred  = 64 << 10
	decodeAtOnce = 2 << 10 // bytes, before the decoded size is checked
)

var errBomb = errors.New("a field block expands to many times its size")

// decode decodes a block: field by field it comes to emit.
func (c *Conn) decode(p []byte) error {
	var err error
	c.block.decoded, c.block.enough = 0, false
	for done := 0; done < len(p) && err == nil; {
		next := min(done+decodeAtOnce, len(p))
		_, err = c.hpack.Write(p[done:next])
		if done = next; c.block.decoded > maxInflation*done+maxReferred {
			err = errBomb
		}
	}
	if err == nil {
		err = c.hpack.Close()
	}
	c.hpack.SetEmitEnabled(true)
	switch {
	case err == errBomb:
		return flooded(HeaderFlood)
	case errors.Is(err, hpack.ErrStringLength):
		return flooded(HeaderFlood)
	case err != nil:
		return broken(http2.CompressionError, fmt.Sprintf("a field block cannot be decoded: %v (RFC 9113, section 4.3)", err))
	}
	return nil
}

// emit accepts one field from the decoder.
func (c *Conn) emit(f hpack.HeaderField) {
	b := &c.block
	b.decoded += len(f.Name) + len(f.Value)
	b.enough = b.enough || !b.fields.Add(f.Name, f.Value)
}

// makeRequest makes the request of a stream out of its fields, and returns the rule
// that makes it malformed, or "".
func (s *stream) makeRequest(f *section.Section, end bool) (fault string) {
	v := f.MakeRequest(&s.ex, end)
	rq := &s.ex.Request
	s.answer, s.expect = v.Answer, v.Length
	if v.Protocol != "" && v.Fault == "" && v.Answer == nil {
		s.ex.ExtendWebSocket()
	}
	if v.Body {
		rq.Length, rq.Body = v.Length, &s.body
	}
	if v.Fault == "" && rq.Header.Has(header.Priority) {
		s.urgency, s.rotates = section.Priority(rq.Header.Get(header.Priority))
		s.signalled = true
	}
	return v.Fault
}

func (c *Conn) skipBlock(p []byte) error {
	c.hpack.SetEmitEnabled(false)
	return c.decode(p)
}

// lateHeaders judges a field block on a stream that is no more.
func (c *Conn) lateHeaders(id uint32, p []byte) error {
	if err := c.skipBlock(p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch known, reset := c.ended(id); {
	case reset:
		return c.chargeLocked(floodPriority)
	case known:
		return broken(http2.StreamClosed, "HEADERS on a closed stream (RFC 9113, section 5.1)")
	}
	return broken(http2.ProtocolError, "a new stream with a number below that of an older one (RFC 9113, section 5.1.1)")
}

// refuse resets a stream that exceeds the maximum. The client may try again (RFC 9113,
// section 5.1.2). It counts as a flood only if the client knew the maximum; it cannot know
// that there is no memory for its requests.
func (c *Conn) refuse(id uint32, p []byte, charged bool) error {
	if err := c.skipBlock(p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.Out = http2.AppendRSTStream(c.mu.Space(), id, http2.RefusedStream)
	c.remember(id, true)
	if !charged {
		return c.queuedLocked()
	}
	return c.chargeLocked(floodReset)
}

// open starts a new stream.
func (c *Conn) open(id uint32, p []byte) error {
	c.port = c.front.Port()
	s := c.newStream(id)
	f := &c.block.fields
	f.Reset(&s.ex.Request.Header, c.port)
	if err := c.decode(p); err != nil {
		s.recycle()
		return err
	}
	fault := s.makeRequest(f, c.block.end)
	if fault == "" && c.block.self {
		fault = "a stream that depends on itself (RFC 7540, section 5.3.1)"
	}
	*f = section.Section{}
	if fault != "" {
		return c.reject(s, fault)
	}
	c.mu.Lock()
	s.remote = c.block.end
	s.window = c.mu.initial
	if len(c.mu.updates) > 0 {
		c.takeUpdate(s)
	}
	c.mu.streams.Add(s.id, s)
	c.mu.Active++
	c.mu.Unlock()
	c.opened = append(c.opened, s)
	if s.answer != nil && s.answer.Reason == exchange.HeadTooLarge {
		return c.charge(HeaderFlood) // it may be tiny before it is decoded
	}
	return nil
}

// reject resets a request that is malformed (RFC 9113, section 8.1.1). It is logged like
// any request that is rejected.
func (c *Conn) reject(s *stream, fault string) error {
	s.malformed = true
	c.port.Refuse(&s.ex, exchange.Fail(exchange.BadRequest, fault))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.Out = http2.AppendRSTStream(c.mu.Space(), s.id, http2.ProtocolError)
	c.remember(s.id, true)
	s.recycle()
	return c.offend()
}

// trailers handles the field block behind a body (RFC 9113, section 8.1).
func (c *Conn) trailers(id uint32, p []byte) error {
	f := &c.block.fields
	list := &header.List{}
	f.BeginTrailers(list, c.port)
	if err := c.decode(p); err != nil {
		return err
	}
	fault := f.SettleTrailers()
	*f = section.Section{}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stream(id)
	switch {
	case s == nil:
		return nil // ended meanwhile
	case s.remote:
		c.resetLocked(s, http2.StreamClosed, errors.New("the client sent HEADERS behind the end of its request"))
		return c.offend()
	case !c.block.end:
		fault = "a second field block that does not end the request (RFC 9113, section 8.1)"
	case s.expect >= 0 && s.received != s.expect:
		fault = "the body is not as long as Content-Length says (RFC 9113, section 8.1.1)"
	}
	if fault != "" {
		s.breakLocked(fault)
		return c.offend()
	}
	s.trailer = *list
	s.remote = true
	if s.local {
		c.closeLocked(s, false)
	}
	s.body.Wake.Raise()
	return nil
}
