package h2

import (
	"errors"

	"headgate/internal/proto/http2"
)

// onData handles a DATA frame (RFC 9113, section 6.1). Its payload is passed to
// the stream as it arrives.
func (c *Conn) onData(h http2.Frame) error {
	if h.Stream == 0 {
		return broken(http2.ProtocolError, "DATA on stream 0 (RFC 9113, section 6.1)")
	}
	pad, used := 0, http2.FrameHeaderSize
	if h.Flags&http2.FlagPadded != 0 {
		if h.Length == 0 {
			return broken(http2.FrameSizeError, "padded DATA without a pad length (RFC 9113, section 6.1)")
		}
		if err := c.await(http2.FrameHeaderSize + 1); err != nil {
			return err
		}
		pad, used = int(c.buf.Bytes()[http2.FrameHeaderSize]), http2.FrameHeaderSize+1
	}
	n := h.Length - (used - http2.FrameHeaderSize) - pad
	if n < 0 {
		return broken(http2.ProtocolError, "padding larger than the frame (RFC 9113, section 6.1)")
	}
	c.buf.Use(used)
	if err := c.receive(h, n); err != nil {
		return err
	}
	c.patient = true
	err := c.payload(h.Stream, n)
	if err == nil {
		err = c.skip(pad)
	}
	c.patient = false
	if err == nil && h.Flags&http2.FlagEndStream != 0 {
		c.endRemote(h.Stream)
	}
	return err
}

// receive counts a DATA frame with n bytes of payload against the windows and
// judges whether it may come.
func (c *Conn) receive(h http2.Frame, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.receive -= int64(h.Length)
	if c.mu.receive < 0 {
		return broken(http2.FlowControlError, "more DATA than the connection's window (RFC 9113, section 6.9.1)")
	}
	if h.Stream > c.mu.lastID || h.Stream&1 == 0 {
		return broken(http2.ProtocolError, "DATA on an idle stream (RFC 9113, section 5.1)")
	}
	c.grantLocked(int64(h.Length - n)) // padding is used up at once
	s := c.stream(h.Stream)
	if s == nil {
		return c.lateLocked(h.Stream, "DATA")
	}
	within := s.receive.Receive(h.Length, h.Length-n) // padding is used up at once
	s.received += int64(n)
	switch {
	case s.remote:
		c.resetLocked(s, http2.StreamClosed, errors.New("the client sent DATA behind the end of its request"))
	case !within:
		c.resetLocked(s, http2.FlowControlError, errors.New("the client sent more DATA than the stream's window"))
	case s.expect >= 0 && (s.received > s.expect || h.Flags&http2.FlagEndStream != 0 && s.received != s.expect):
		s.breakLocked("the body is not as long as Content-Length says (RFC 9113, section 8.1.1)")
	case n == 0 && h.Flags&http2.FlagEndStream == 0:
		return c.chargeLocked(floodEmpty)
	default:
		c.mu.budget.refund(floodEmpty, 1)
		if !c.keep(c.bufferedLocked()) {
			c.resetLocked(s, http2.EnhanceYourCalm, errMemory)
			return c.queuedLocked()
		}
		return nil
	}
	return c.offend()
}

var errMemory = errors.New("the requests of the client hold more memory than it may have (max_memory, max_memory_per_client)")

// breakLocked ends a stream whose request turned out to be malformed while its
// exchange is under way.
func (s *stream) breakLocked(text string) {
	s.body.broken = errors.New(text)
	s.conn.grantLocked(s.body.SizeLocked())
	s.body.DropLocked()
	s.conn.resetLocked(s, http2.ProtocolError, s.body.broken)
}

// lateLocked judges a frame on a stream that has ended. One that we reset may
// still get what was under way (RFC 9113, section 5.1).
func (c *Conn) lateLocked(id uint32, what string) error {
	switch known, reset := c.ended(id); {
	case reset || c.mu.refused:
		return nil
	case known:
		return broken(http2.StreamClosed, what+" on a closed stream (RFC 9113, section 5.1)")
	}
	c.mu.Out = http2.AppendRSTStream(c.mu.Space(), id, http2.StreamClosed)
	return c.chargeLocked(floodPriority)
}

// payload hands n bytes of payload on.
func (c *Conn) payload(id uint32, n int) error {
	for n > 0 {
		if n >= http2.MinDirect && n > c.buf.Len() {
			return c.direct(id, n)
		}
		if c.buf.Len() == 0 {
			if _, err := c.more(nil); err != nil {
				return err
			}
		}
		k := min(n, c.buf.Len())
		c.mu.Lock()
		if s := c.stream(id); s != nil && !s.body.closed {
			s.body.PutLocked(c.buf.Bytes()[:k])
		} else {
			c.grantLocked(int64(k))
		}
		c.mu.Unlock()
		c.buf.Use(k)
		n -= k
	}
	return nil
}

// direct reads a large payload into memory that the body then owns.
func (c *Conn) direct(id uint32, n int) error {
	k := http2.TakeChunk(n)
	k.W = copy(k.Mem[:n], c.buf.Bytes())
	c.buf.Use(k.W)
	for k.W < n {
		m, err := c.more(k.Mem[k.W:n])
		if err != nil {
			k.Release()
			return err
		}
		k.W += m
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stream(id); s != nil && !s.body.closed {
		s.body.AddLocked(k)
		return nil
	}
	k.Release()
	c.grantLocked(int64(n))
	return nil
}

// skip drops n bytes of padding.
func (c *Conn) skip(n int) error {
	for n > 0 {
		if c.buf.Len() == 0 {
			if _, err := c.more(nil); err != nil {
				return err
			}
		}
		k := min(n, c.buf.Len())
		c.buf.Use(k)
		n -= k
	}
	return nil
}

// endRemote notes that the request of a stream is complete.
func (c *Conn) endRemote(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stream(id)
	if s == nil {
		return
	}
	s.remote = true
	if s.local {
		c.closeLocked(s, false)
	}
	s.body.Wake.Raise()
}

// grantLocked opens the connection's window by n bytes. WINDOW_UPDATE is sent when that is
// worth a frame. c.mu is held.
func (c *Conn) grantLocked(n int64) {
	c.mu.consumed += n
	if c.mu.consumed >= connWindow/4 && c.mu.Err == nil {
		c.mu.Out = http2.AppendWindowUpdate(c.mu.Space(), 0, c.mu.consumed)
		c.mu.receive += c.mu.consumed
		c.mu.consumed = 0
	}
}

// grantLocked opens the window of the stream by n bytes.
func (s *stream) grantLocked(n int64) {
	c := s.conn
	if s.remote || s.gone != nil || c.mu.Err != nil {
		return
	}
	if by := s.receive.Read(n); by > 0 {
		c.mu.Out = http2.AppendWindowUpdate(c.mu.Space(), s.id, by)
	}
}
