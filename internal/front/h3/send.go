package h3

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/qpack"
)

// Sizes of the memory in which a response is made, in bytes. A short one is made
// in the first, with its head; a long one is copied through the second.
const (
	shortSize = 8 << 10
	copySize  = 32 << 10
	longSize  = 128 << 10
)

// A response whose body had longPieces pieces gets longer ones, which wake the sender less
// often, while fewer than maxLong responses of the front have them: that limits the memory
// for clients that do not read.
const (
	longPieces = 8
	maxLong    = 64
)

// dataRoom is what is left free before a piece of data whose length is not known
// yet: the type, and a length of four bytes.
const dataRoom = 5

var (
	shortBuffers = sync.Pool{New: func() any { return new([shortSize]byte) }}
	copyBuffers  = sync.Pool{New: func() any { return new([copySize]byte) }}
	longBuffers  = sync.Pool{New: func() any { return new([longSize]byte) }}
)

// Send writes the response of ex: its head, its body as it comes, and its
// trailers; or joins the tunnel of an extended CONNECT.
func (s *stream) Send(ex *exchange.Exchange) error {
	if s.malformed {
		return nil // answered with a reset
	}
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)
	s.sending.Lock()
	s.sending.begun = true
	s.sending.Unlock()

	rs := &ex.Response
	if rs.Header.Has(header.Priority) {
		s.prioritise(rs.Header.Get(header.Priority))
	}
	head := frameOf(appendResponse(short[:headRoom], ex))
	rs.HeadSent = true
	var err error
	switch {
	case rs.Tunnel != nil:
		return s.sendTunnel(ex, head)
	case ex.Request.Method == "HEAD" || rs.Status == 204 || rs.Status == 304:
		err = s.last(head)
	case rs.Text != nil:
		head = append(appendFrame(head, frameData, uint64(len(rs.Text))), rs.Text...)
		ex.Sent = int64(len(rs.Text))
		err = s.last(head)
	case rs.Body == nil || rs.Length == 0:
		err = s.last(head)
	case rs.Length > 0:
		err = s.sendKnown(ex, appendFrame(head, frameData, uint64(rs.Length)))
	default:
		err = s.sendPieces(ex, head)
	}
	if err != nil {
		s.quic.CancelWrite(resetCode(err).stream()) // unless it has ended already
		return err
	}
	s.conn.budget.useful()
	return nil
}

// resetCode returns the code with which a response that broke off is reset: that of the
// server if it has canceled the response (RFC 9114, section 4.1.1).
func resetCode(err error) code {
	if exchange.ReasonOf(err) == exchange.UpstreamCanceled {
		return requestCancelled
	}
	return internalError
}

// last writes the end of a response.
func (s *stream) last(b []byte) error {
	if 0 < len(b) && len(b) <= joinMax && s.conn.others() && s.sendWhole(b) {
		s.told, s.whole = true, true
		return nil
	}
	if err := s.write(b); err != nil {
		return err
	}
	s.whole = true
	s.quic.Close()
	return nil
}

// sendKnown sends a body whose length is known, in one DATA frame that was begun
// in head. What is at hand of the body goes along with the head.
func (s *stream) sendKnown(ex *exchange.Exchange, head []byte) error {
	rs := &ex.Response
	used := len(head)
	for rs.Body.Ready() && cap(head)-len(head) >= roomLeast {
		n, err := rs.Body.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		ex.Sent += int64(n)
		if err != nil {
			return s.sendEnd(ex, head, used, err)
		}
	}
	if err := s.write(head); err != nil {
		return err
	}
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	b := p[:]
	for pieces := 0; ; pieces++ {
		if pieces == longPieces {
			if long := s.conn.front.takeLong(); long != nil {
				defer s.conn.front.giveLong(long)
				b = long[:]
			}
		}
		n, err := rs.Body.Read(b)
		ex.Sent += int64(n)
		if err != nil {
			return s.sendEnd(ex, b[:n], 0, err)
		}
		if err := s.write(b[:n]); err != nil {
			return err
		}
	}
}

// takeLong returns memory for pieces of a long body, or nil where as many responses as
// may have some already.
func (f *Front) takeLong() *[longSize]byte {
	if f.long.Add(1) > maxLong {
		f.long.Add(-1)
		return nil
	}
	return longBuffers.Get().(*[longSize]byte)
}

// giveLong releases it.
func (f *Front) giveLong(p *[longSize]byte) {
	longBuffers.Put(p)
	f.long.Add(-1)
}

// sendPieces sends a body whose length is not known, each piece in a frame of its
// own. What is at hand of the body goes along with the head.
func (s *stream) sendPieces(ex *exchange.Exchange, head []byte) error {
	rs := &ex.Response
	p := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(p)
	b := append(p[:0], head...)
	for {
		for waits := len(b) == 0; waits || rs.Body.Ready(); waits = false {
			at := len(b)
			if cap(b)-at < dataRoom+roomLeast {
				break
			}
			n, err := rs.Body.Read(b[at+dataRoom : cap(b)])
			ex.Sent += int64(n)
			if n > 0 {
				b = piece(b, n)
			}
			if err != nil {
				return s.sendEnd(ex, b, 0, err)
			}
		}
		if err := s.write(b); err != nil {
			return err
		}
		b = p[:0]
	}
}

// piece makes a DATA frame of n bytes that follow b and the space for its head.
func piece(b []byte, n int) []byte {
	at := len(b)
	b = append(b, frameData, 0x80|byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return b[:at+dataRoom+n]
}

// sendEnd sends the last of a body that ended with err, and the trailers.
func (s *stream) sendEnd(ex *exchange.Exchange, b []byte, _ int, err error) error {
	rs := &ex.Response
	if err == io.EOF && rs.Length >= 0 && ex.Sent != rs.Length {
		err = &exchange.Error{Reason: exchange.UpstreamReset, Err: io.ErrUnexpectedEOF}
	}
	if err != io.EOF {
		s.write(b)
		return err
	}
	trailer := ex.ResponseTrailer()
	if trailer.Len() == 0 {
		return s.last(b)
	}
	if err := s.write(b); err != nil {
		return err
	}
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)
	return s.last(frameOf(appendFields(qpack.AppendPrefix(short[:headRoom]), trailer)))
}

var errSlow = errors.New("the client did not read the response in time")

// write writes to the stream. It returns when all but the last packet has been
// sent, so the memory may be used again; it waits if the client does not read.
func (s *stream) write(p []byte) error {
	for len(p) > 0 {
		idle := s.port.WriteIdle
		if s.tunnelIdle > 0 {
			idle = s.tunnelIdle
		}
		s.awaitAtMost(int64(idle))
		n, err := s.quic.Write(p)
		p = p[n:]
		s.told = s.told || n > 0 && s.sending.begun
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return &exchange.Error{Reason: exchange.ClientClosed, Err: err}
		case n == 0:
			return &exchange.Error{Reason: exchange.ClientTimeout, Err: errSlow}
		}
		if err != nil {
			s.until = 0
		}
	}
	return nil
}

// awaitAtMost sets how long the client may read nothing. The deadline is moved when
// a quarter of it has passed, not for every write.
func (s *stream) awaitAtMost(idle int64) {
	if idle <= 0 {
		return
	}
	if now := exchange.Now(); s.until-now < idle-idle/4 {
		s.until = now + idle
		s.quic.SetWriteDeadline(time.Now().Add(time.Duration(idle)))
	}
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
	b := appendStatus(qpack.AppendPrefix(short[:headRoom]), status)
	if fields != nil {
		b = appendFields(b, fields)
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.sending.begun {
		return nil
	}
	return s.write(frameOf(b))
}
