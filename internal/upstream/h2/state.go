package h2

import (
	"errors"
	"fmt"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// What the reader does to streams. conn.mu is held in all of this.

// closeLocked removes a stream from the table.
func (c *Conn) closeLocked(s *Stream) {
	if !s.listed {
		return
	}
	s.listed = false
	c.mu.streams.Remove(s.id)
}

// loseLocked ends a stream whose connection goes no further.
func (s *Stream) loseLocked(err error) {
	if s.gone == nil && !s.complete() {
		s.gone = reason(err)
	}
	s.local, s.remote = true, true
	s.body.Wake.Raise()
	s.wakeUp.Raise()
}

// reason returns an error with its reason.
func reason(err error) *exchange.Error {
	var known *exchange.Error
	if errors.As(err, &known) {
		return known
	}
	return &exchange.Error{Reason: exchange.UpstreamReset, Err: err}
}

// breakLocked ends a stream on which the server broke a rule (RFC 9113, section
// 8.1.1).
func (s *Stream) breakLocked(code http2.Code, text string) {
	c := s.conn
	c.mu.Out = http2.AppendRSTStream(c.mu.Space(), s.id, code)
	s.endLocked(&exchange.Error{Reason: exchange.UpstreamInvalid, Err: fmt.Errorf("server %s: %s", c.settings.Name, text)})
}

// endLocked ends a stream on both sides.
func (s *Stream) endLocked(err *exchange.Error) {
	if s.gone == nil {
		s.gone = err
	}
	s.local, s.remote = true, true
	s.conn.closeLocked(s)
	s.body.Wake.Raise()
	s.wakeUp.Raise()
}

// onResetLocked ends a stream that the server has reset. A server that has
// answered may reset what is left of the request (RFC 9113, section 8.1).
func (s *Stream) onResetLocked(code http2.Code) {
	name := s.conn.settings.Name
	switch {
	case s.complete():
		s.local = true
		s.conn.closeLocked(s)
		s.wakeUp.Raise()
	case code == http2.RefusedStream && !s.answered:
		s.endLocked(&exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: server %s refused the stream", ErrUnprocessed, name)})
	case code == http2.HTTP11Required && !s.answered:
		s.endLocked(&exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: server %s reset the stream", ErrHTTP1, name)})
	case code == http2.Cancel:
		s.endLocked(&exchange.Error{Reason: exchange.UpstreamCanceled, Err: fmt.Errorf("server %s reset the stream (%s)", name, code)})
	default:
		s.endLocked(&exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("server %s reset the stream (%s)", name, code)})
	}
}

// withoutHead returns the error of a stream that ended before its response head. gRPC
// servers cancel a call whose deadline has passed. From any other server it is a request
// without a response, whatever the code: that counts as a reset.
func (s *Stream) withoutHead(err error) error {
	known, ok := errors.AsType[*exchange.Error](err)
	if !ok || known.Reason != exchange.UpstreamCanceled || s.ex.Request.GRPC() {
		return err
	}
	return &exchange.Error{Reason: exchange.UpstreamReset, Err: known.Err}
}

// receiveLocked counts a DATA frame with n bytes of content and judges whether it
// may come.
func (s *Stream) receiveLocked(length, n int, end bool) error {
	within := s.room.Receive(length, length-n) // padding is used up at once
	s.got += int64(n)
	empty := s.noBody || s.status == 204 || s.status == 304
	switch {
	case s.remote:
		s.breakLocked(http2.StreamClosed, "DATA behind the end of its answer (RFC 9113, section 5.1)")
	case !s.answered:
		s.breakLocked(http2.ProtocolError, "DATA before the head of its answer (RFC 9113, section 8.1)")
	case !within:
		s.breakLocked(http2.FlowControlError, "more DATA than the stream's window (RFC 9113, section 6.9.1)")
	case empty && n > 0:
		s.breakLocked(http2.ProtocolError, "an answer that has no content comes with some (RFC 9110, section 6.4.1)")
	case !empty && s.length >= 0 && s.got > s.length:
		s.breakLocked(http2.ProtocolError, "the body is longer than Content-Length says (RFC 9113, section 8.1.1)")
	case n == 0 && !end:
		return s.conn.useless()
	}
	return nil
}

// endRemoteLocked notes that the response is complete.
func (s *Stream) endRemoteLocked() {
	if s.noBody || s.status == 204 || s.status == 304 || s.length < 0 || s.got == s.length {
		s.remote, s.whole = true, true
		if s.local {
			s.conn.closeLocked(s)
		}
		s.body.Wake.Raise()
		return
	}
	s.breakLocked(http2.ProtocolError, "the body is shorter than Content-Length says (RFC 9113, section 8.1.1)")
}
