package h2

import (
	"errors"
	"io"
	"sync"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
)

// Sizes of the memory in which a response is made, in bytes. A short one is made
// in the first, with its head; a long one is copied through the second.
const (
	shortSize = 8 << 10
	copySize  = 32 << 10
)

// roomLeast is the free space, in bytes, behind a head that makes it worthwhile
// to read the body there.
const roomLeast = 512

var (
	shortBuffers = sync.Pool{New: func() any { return new([shortSize]byte) }}
	copyBuffers  = sync.Pool{New: func() any { return new([copySize]byte) }}
)

// Send writes the response of ex: its head, its body as it comes, and its
// trailers.
func (s *stream) Send(ex *exchange.Exchange) error {
	if s.malformed {
		return nil // answered with a reset
	}
	defer s.conn.mu.Flush()
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)

	rs := &ex.Response
	bodiless := ex.Request.Method == "HEAD" || rs.Status == 204 || rs.Status == 304
	head := appendResponse(short[:0], ex)
	if rs.Header.Has(header.Priority) {
		s.prioritise(rs.Header.Get(header.Priority))
	}
	if err := s.beginFinal(); err != nil {
		return err
	}
	rs.HeadSent = true
	switch {
	case rs.Tunnel != nil:
		return s.sendTunnel(ex, head)
	case bodiless:
		return s.push(head, nil, true)
	case rs.Text != nil:
		ex.Sent = int64(len(rs.Text))
		return s.push(head, rs.Text, true)
	case rs.Body == nil || rs.Length == 0:
		return s.push(head, nil, true)
	}
	err := s.sendBody(ex, head, short[:])
	if err != nil {
		s.giveUp(resetCode(err), err) // unless it has ended already
	}
	return err
}

// resetCode returns the code with which a response that broke off is reset: that of the
// server if it has canceled the response.
func resetCode(err error) http2.Code {
	if exchange.ReasonOf(err) == exchange.UpstreamCanceled {
		return http2.Cancel
	}
	return http2.InternalError
}

// beginFinal notes that nothing interim may follow.
func (s *stream) beginFinal() error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.begun = true
	return s.goneError()
}

// goneError returns why the stream ended early. conn.mu is held.
func (s *stream) goneError() error {
	if s.gone == nil {
		return nil
	}
	reason := exchange.ClientClosed
	if errors.Is(s.gone, netconn.ErrTimeout) {
		reason = exchange.ClientTimeout
	}
	return &exchange.Error{Reason: reason, Err: s.gone}
}

// sendBody sends the head and the body. What is at hand of the body goes along
// with the head.
func (s *stream) sendBody(ex *exchange.Exchange, head, short []byte) error {
	rs := &ex.Response
	used := len(head)
	if used > len(short) {
		used = 0 // the head was too long and is elsewhere
	}
	at := used
	for rs.Body.Ready() && len(short)-at >= roomLeast {
		n, err := rs.Body.Read(short[at:])
		at += n
		ex.Sent += int64(n)
		if err != nil {
			return s.sendEnd(ex, head, short[used:at], err)
		}
	}
	if err := s.push(head, short[used:at], false); err != nil {
		return err
	}
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	for {
		if !rs.Body.Ready() {
			s.conn.mu.Flush()
		}
		n, err := rs.Body.Read(p[:])
		ex.Sent += int64(n)
		if err != nil {
			return s.sendEnd(ex, nil, p[:n], err)
		}
		if err := s.push(nil, p[:n], false); err != nil {
			return err
		}
	}
}

// sendEnd sends the last of a body that ended with err, and the trailers.
func (s *stream) sendEnd(ex *exchange.Exchange, head, data []byte, err error) error {
	rs := &ex.Response
	if err == io.EOF && rs.Length >= 0 && ex.Sent != rs.Length {
		err = &exchange.Error{Reason: exchange.UpstreamReset, Err: io.ErrUnexpectedEOF}
	}
	if err != io.EOF {
		if len(head)+len(data) > 0 {
			s.push(head, data, false)
		}
		return err
	}
	trailer := ex.ResponseTrailer()
	if trailer.Len() == 0 {
		return s.push(head, data, true)
	}
	if len(head)+len(data) > 0 {
		if err := s.push(head, data, false); err != nil {
			return err
		}
	}
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)
	return s.push(appendFields(short[:0], trailer), nil, true)
}

// push sends a field block, data behind it, and the end if nothing follows. It
// returns when all of it is in the buffer of the connection, so the memory may be
// used again. It waits if the client does not read.
func (s *stream) push(head, data []byte, end bool) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.goneError(); err != nil {
		return err
	}
	if len(head) == 0 && len(data) == 0 && !end {
		return nil
	}
	p := &s.piece
	p.head, p.data, p.end, p.tick = nil, data, end, c.mu.ticks
	if len(head) > 0 {
		p.head = head
	}
	c.mu.queue.add(s)
	c.fill()
	for p.queued {
		left := len(p.data)
		switch {
		case s.gone != nil:
			c.mu.queue.remove(s)
		case c.mu.WriteLocked():
		case !s.wait() && left == len(p.data) && p.queued && s.gone == nil:
			c.resetLocked(s, http2.Cancel, errSlow)
			p.head, p.data = nil, nil
			return &exchange.Error{Reason: exchange.ClientTimeout, Err: errSlow}
		default:
			c.fill()
		}
	}
	p.head, p.data = nil, nil
	return s.goneError()
}

var errSlow = errors.New("the client did not read the response in time")

// wait waits until something has changed, and reports false after the timeout.
// conn.mu is held except while waiting.
func (s *stream) wait() bool {
	c := s.conn
	limit := s.port.WriteIdle
	if s.tunnelIdle > 0 {
		limit = s.tunnelIdle
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	return s.wake.Wait(limit)
}

// giveUp resets the stream.
func (s *stream) giveUp(why http2.Code, err error) {
	c := s.conn
	c.mu.Lock()
	if !s.local && s.gone == nil {
		c.resetLocked(s, why, err)
	}
	c.mu.Unlock()
}

// Abort resets the stream, so that the client can detect that the response is incomplete.
func (s *stream) Abort(*exchange.Exchange) {
	if s.malformed {
		return // answered with a reset
	}
	s.giveUp(http2.InternalError, errAborted)
	s.conn.mu.Flush()
}

// Gone reports whether the client has reset the stream or left.
func (s *stream) Gone() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.gone != nil
}

// Inform sends an interim response (RFC 9110, section 15.2).
func (s *stream) Inform(_ *exchange.Exchange, status int, fields *header.List) error {
	return s.interim(status, fields)
}

// letGo sends 100 (Continue).
func (s *stream) letGo() { s.interim(100, nil) }

// interim sends an interim response unless the final one has begun.
func (s *stream) interim(status int, fields *header.List) error {
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)
	b := appendStatus(short[:0], status)
	if fields != nil {
		b = appendFields(b, fields)
	}
	c := s.conn
	c.mu.Lock()
	if !s.begun && s.gone == nil && !s.remoteDone(status) {
		c.appendBlock(s.id, b, false)
	}
	err := s.goneError()
	c.mu.Unlock()
	c.mu.Flush()
	return err
}

// remoteDone reports whether 100 has come too late: the whole body is here.
func (s *stream) remoteDone(status int) bool { return status == 100 && s.remote }
