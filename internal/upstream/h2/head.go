package h2

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/http2"
)

// maxInterim is how many interim responses a server may send before its answer.
const maxInterim = 64

// maxFields is how many fields a head may have.
const maxFields = 1000

// block is a field block on its way, and what was found in it.
type block struct {
	id     uint32 // of the stream, 0 if none is under way
	end    bool   // the response ends with it
	mem    []byte // what came of a block in several pieces
	pieces int

	list     *header.List // nil: nothing is expected
	trailing bool
	size     int
	status   int // 0 before :status
	regular  bool
	length   int64 // Content-Length, or -1
	fault    string
}

// onHeaders starts a field block (RFC 9113, section 6.2).
func (c *Conn) onHeaders(f http2.Frame, p []byte) error {
	if f.Stream == 0 || c.neverOpened(f.Stream) {
		return broken(http2.ProtocolError, "HEADERS on a stream that was not opened (RFC 9113, section 5.1)")
	}
	pad := 0
	if f.Has(http2.FlagPadded) {
		if len(p) == 0 {
			return broken(http2.FrameSizeError, "padded HEADERS without a pad length (RFC 9113, section 6.2)")
		}
		pad, p = int(p[0]), p[1:]
	}
	if f.Has(http2.FlagPriority) {
		if len(p) < http2.PrioritySize {
			return broken(http2.FrameSizeError, "HEADERS with a priority that is not whole (RFC 9113, section 6.2)")
		}
		p = p[http2.PrioritySize:]
	}
	if pad > len(p) {
		return broken(http2.ProtocolError, "padding larger than the frame (RFC 9113, section 6.2)")
	}
	p = p[:len(p)-pad]
	b := &c.block
	b.end = f.Has(http2.FlagEndStream)
	if f.Has(http2.FlagEndHeaders) {
		return c.endBlock(f.Stream, p)
	}
	b.id, b.pieces = f.Stream, 1
	b.mem = append(b.mem[:0], p...)
	return nil
}

// onContinuation goes on with a field block (RFC 9113, section 6.10).
func (c *Conn) onContinuation(f http2.Frame, p []byte) error {
	b := &c.block
	b.pieces++
	if b.pieces > maxPieces || len(b.mem)+len(p) > 2*c.settings.HeadSize+http2.MaxFrameSize {
		return broken(http2.EnhanceYourCalm, "a field block has too many pieces or too many bytes")
	}
	b.mem = append(b.mem, p...)
	if !f.Has(http2.FlagEndHeaders) {
		return nil
	}
	id, whole := b.id, b.mem
	b.id, b.mem = 0, nil // a long block is rare: its memory is not kept
	return c.endBlock(id, whole)
}

// endBlock passes a complete field block to its stream. It is decoded in any
// case, as the state of HPACK depends on every block.
func (c *Conn) endBlock(id uint32, p []byte) error {
	s := c.mu.streams.Get(id)
	if s == nil || s.remote {
		c.startBlock(nil, false)
		if err := c.decode(p); err != nil {
			return err
		}
		if s != nil {
			s.breakLocked(http2.StreamClosed, "HEADERS behind the end of its answer (RFC 9113, section 5.1)")
		}
		return c.useless()
	}
	list := &s.fields
	if s.answered {
		list = &s.trailer
	}
	list.Reset()
	c.startBlock(list, s.answered)
	if err := c.decode(p); err != nil {
		return err
	}
	b := &c.block
	b.list = nil
	switch {
	case b.fault != "":
		s.breakLocked(http2.ProtocolError, b.fault)
	case s.answered && !b.end:
		s.breakLocked(http2.ProtocolError, "a second head (RFC 9113, section 8.1)")
	case s.answered:
		s.endRemoteLocked()
	default:
		c.answer(s)
	}
	return nil
}

// startBlock prepares the block for the headers of a list, or to discard them.
func (c *Conn) startBlock(list *header.List, trailing bool) {
	b := &c.block
	b.list, b.trailing, b.size, b.status, b.regular, b.length, b.fault = list, trailing, 0, 0, false, -1, ""
	c.hpack.SetEmitEnabled(list != nil)
}

// answer handles the head of a response.
func (c *Conn) answer(s *Stream) {
	b := &c.block
	switch {
	case b.status < 200 && b.end:
		s.breakLocked(http2.ProtocolError, "an interim response that ends the stream (RFC 9113, section 8.1)")
	case b.status == 101:
		s.breakLocked(http2.ProtocolError, "101 has no place in HTTP/2 (RFC 9113, section 8.6)")
	case b.status < 200 && len(s.interims) >= maxInterim:
		s.breakLocked(http2.EnhanceYourCalm, fmt.Sprintf("more than %d interim responses", maxInterim))
	case b.status < 200:
		in := interim{status: b.status}
		s.fields.CopyTo(&in.fields)
		s.interims = append(s.interims, in)
		s.body.Wake.Raise()
	default:
		c.mu.useless = 0
		c.mu.served++
		s.answered, s.status, s.length = true, b.status, b.length
		if b.end {
			s.endRemoteLocked()
			return
		}
		s.body.Wake.Raise()
	}
}

// decode decodes a block: field by field it comes to emit.
func (c *Conn) decode(p []byte) error {
	_, err := c.hpack.Write(p)
	if err == nil {
		err = c.hpack.Close()
	}
	switch {
	case errors.Is(err, hpack.ErrStringLength):
		return broken(http2.EnhanceYourCalm, "a field is larger than the bound on a response head")
	case err != nil:
		return broken(http2.CompressionError, fmt.Sprintf("a field block cannot be decoded: %v (RFC 9113, section 4.3)", err))
	}
	if b := &c.block; b.list != nil && b.fault == "" && b.status == 0 && !b.trailing {
		b.fault = "no :status (RFC 9113, section 8.3.2)"
	}
	return nil
}

// emit accepts one field from the decoder.
func (c *Conn) emit(hf hpack.HeaderField) {
	b := &c.block
	if b.list == nil || b.fault != "" {
		return
	}
	b.size += len(hf.Name) + len(hf.Value) + len(": \r\n") // as in HTTP/1.1
	switch {
	case b.size > c.settings.HeadSize || b.list.Len() >= maxFields:
		b.fault = "the head is larger than the limit"
		c.hpack.SetEmitEnabled(false)
	case len(hf.Name) > 0 && hf.Name[0] == ':':
		b.addStatus(hf.Name, hf.Value)
	default:
		b.regular = true
		b.add(hf.Name, hf.Value)
	}
}

// addStatus handles the only pseudo-header field of responses (RFC 9113,
// section 8.3.2).
func (b *block) addStatus(name, value string) {
	switch {
	case b.trailing:
		b.fault = "a pseudo-header field in trailers (RFC 9113, section 8.1)"
	case name != ":status" || b.status != 0 || b.regular:
		b.fault = "pseudo-header fields other than one :status, first (RFC 9113, section 8.3)"
	case len(value) != 3 || value[0] < '1' || value[0] > '5' || value[1]-'0' > 9 || value[2]-'0' > 9:
		b.fault = ":status is not a status code (RFC 9110, section 15)"
	default:
		b.status = int(value[0]-'0')*100 + int(value[1]-'0')*10 + int(value[2]-'0')
	}
}

// add handles a field that is not a pseudo-header field.
func (b *block) add(name, value string) {
	if !lowerName(name) {
		b.fault = "a field name that is no lower-case token (RFC 9113, section 8.2.1)"
		return
	}
	if !http1.ValidValue(value) {
		b.fault = "a field value with control characters, or white space at an end (RFC 9113, section 8.2.1)"
		return
	}
	id := header.Lookup(name)
	switch {
	case id.ConnectionSpecific():
		b.fault = "a connection-specific field (RFC 9113, section 8.2.2)"
		return
	case id == header.ContentLength:
		b.addLength(value)
		return
	case id == header.Other:
		// What reads as a framing field further on is refused, as in HTTP/1.1.
		switch header.Twin(name) {
		case header.ContentLength, header.TransferEncoding:
			b.fault = "a name that reads as a framing field"
			return
		}
	}
	if b.trailing && !http1.MayTrail(id, name) {
		return
	}
	b.list.AddKnown(id, name, value)
}

func lowerName(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return http1.ValidName(name)
}

// addLength reads Content-Length: once, and digits only.
func (b *block) addLength(value string) {
	n := http1.ParseLength(value)
	switch {
	case b.trailing:
	case b.length >= 0:
		b.fault = "more than one Content-Length (RFC 9110, section 8.6)"
	case n < 0:
		b.fault = "Content-Length is not a number of decimal digits (RFC 9110, section 8.6)"
	default:
		b.length = n
	}
}
