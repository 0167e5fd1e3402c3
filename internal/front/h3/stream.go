package h3

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
	"headgate/internal/front/section"
	"headgate/internal/proto/header"
	"headgate/internal/proto/qpack"
)

// stream is one request and its response. It is the Front of its exchange. Its
// memory is used again when its exchange has ended.
type stream struct {
	// constant while the stream lives
	conn *Conn
	quic *quic.Stream
	port *exchange.Port

	// owned by the worker
	ex     exchange.Exchange
	fields section.Section
	text   qpack.Text
	answer *exchange.Answer // refuses the request if it is not nil
	// malformed says that the request is refused by a reset only (RFC 9114,
	// section 4.1.2).
	malformed  bool
	told       bool          // some of the response was written
	whole      bool          // all of it was
	tunnelIdle time.Duration // how long an extended CONNECT may be silent; 0 for other requests
	until      int64         // the deadline of writes that quic-go knows

	body body

	// guarded by the connection's together
	ready []byte // the end of the response, to be written
	sent  error  // what came of it

	sending struct {
		sync.Mutex
		begun bool // the final response has begun; nothing interim may follow
	}
}

var streams = sync.Pool{New: func() any { return &stream{} }}

// newStream returns a stream whose exchange has begun.
func (c *Conn) newStream(qs *quic.Stream, port *exchange.Port) *stream {
	s := streams.Get().(*stream)
	s.conn, s.quic, s.port = c, qs, port
	s.body.stream = s
	s.body.in.reset(qs)
	ex := &s.ex
	ex.Reset(&c.facts, s)
	ex.Place, ex.Limits = port.Place, port.Limits
	ex.ClientIP = c.facts.Remote.Addr()
	ex.Times.Start = exchange.Now()
	ex.Request.Scheme = c.facts.Scheme
	ex.Request.Proto = exchange.HTTP3
	return s
}

// schedule has a stream served.
func (c *Conn) schedule(s *stream) {
	c.workers.Add(1)
	c.front.crew.Do(s)
}

// Work is serve for a goroutine that goes on whatever happens in it.
func (s *stream) Work() {
	c := s.conn // a stream that has ended is another's
	defer c.workers.Done()
	defer c.guard()
	s.serve()
}

// serve reads the head of a request and completes its exchange.
func (s *stream) serve() {
	err := s.readHead()
	s.ex.Times.Start = exchange.Now()
	switch {
	case s.answer != nil:
		s.port.Refuse(&s.ex, s.answer)
	case err == nil:
		s.port.Serve(&s.ex)
	}
	s.finish(err)
}

// finish ends what the exchange left open, and releases the stream. err is why
// there was no request.
func (s *stream) finish(err error) {
	c, qs, port := s.conn, s.quic, s.port
	switch {
	case err != nil && s.answer == nil:
		s.giveUp(err)
	case s.malformed || s.body.broken:
		s.cancel(messageError)
		c.offend()
	case !s.told && s.takenBack():
		qs.CancelRead(noError.stream())
		qs.CancelWrite(requestCancelled.stream())
		c.countTakenBack()
	default:
		// The rest of the request is not needed (RFC 9114, section 4.1). If the
		// response is not whole, Send and Abort have reset it.
		qs.CancelRead(noError.stream())
		if !s.whole {
			qs.CancelWrite(internalError.stream())
		}
	}
	c.release(qs)
	s.recycle()
	c.end(port)
}

// giveUp ends a stream on which there was no request.
func (s *stream) giveUp(err error) {
	var reset *quic.StreamError
	var rule *connError
	switch {
	case errors.As(err, &rule):
		s.conn.fail(err)
	case errors.As(err, &reset):
		s.cancel(requestCancelled)
		s.conn.countTakenBack()
		return
	case err == errEnd:
		s.cancel(requestIncomplete)
	default:
		return // the connection is no more
	}
	s.conn.charge(resetFlood)
}

// cancel resets both directions.
func (s *stream) cancel(why code) {
	s.quic.CancelRead(why.stream())
	s.quic.CancelWrite(why.stream())
}

// charge counts an action of the client, and ends the connection if it is one too
// many.
func (c *Conn) charge(f flood) {
	if err := c.budget.charge(f); err != nil {
		c.fail(err)
	}
}

// offend counts a request that had to be reset because it broke a rule, for the
// connection and for the client's address: a new connection of a client does
// not reset the count.
func (c *Conn) offend() {
	if c.member.Offend() {
		c.fail(excessive(resetFlood))
		return
	}
	c.charge(resetFlood)
}

// freeResets is how many cancelled requests a connection may have, not compensated by
// others, before they count for the client's address, too: as many as leaving a page can
// cause.
const freeResets = 32

// countTakenBack counts a request that the client canceled (CVE-2023-44487), also for
// its address if that happens repeatedly.
func (c *Conn) countTakenBack() {
	if c.budget.over(resetFlood, freeResets) {
		c.offend()
		return
	}
	c.charge(resetFlood)
}

// recycle releases the memory of a stream. No references to it may remain.
func (s *stream) recycle() {
	s.body.reset()
	s.text.Reset()
	s.fields = section.Section{}
	s.conn, s.quic, s.port, s.answer = nil, nil, nil, nil
	s.malformed, s.told, s.whole, s.tunnelIdle, s.until = false, false, false, 0, 0
	s.sending.begun = false
	streams.Put(s)
}

// Gone reports whether the client has reset the stream or disconnected. It is only called
// before the response has begun.
func (s *stream) Gone() bool { return s.quic.Context().Err() != nil }

// takenBack reports whether the client has reset the stream. Unlike Gone it may be
// called when headgate has as well.
func (s *stream) takenBack() bool {
	var reset *quic.StreamError
	return errors.As(context.Cause(s.quic.Context()), &reset) && reset.Remote
}

// Abort resets the stream, so that the client can detect that the response is incomplete.
func (s *stream) Abort(*exchange.Exchange) { s.quic.CancelWrite(internalError.stream()) }

// readError assigns a reason to an error of the stream.
func readError(err error) error {
	reason := exchange.ClientClosed
	if errors.Is(err, os.ErrDeadlineExceeded) {
		reason, err = exchange.RequestTimeout, errPaused
	}
	return &exchange.Error{Reason: reason, Err: err}
}

var errPaused = errors.New("the request body paused for too long")

// readHead reads the frames up to the head, makes the request of it, and finds out
// whether there is a body.
func (s *stream) readHead() error {
	if t := s.port.HeadTimeout; t > 0 {
		s.quic.SetReadDeadline(time.Now().Add(t))
	}
	err := s.head()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.answer = exchange.Fail(exchange.RequestTimeout, "the request head did not arrive in time")
		return err
	}
	if err == nil && !s.body.in.end {
		s.quic.SetReadDeadline(time.Time{}) // also that of find
	}
	return err
}

// head reads until HEADERS and checks the request.
func (s *stream) head() error {
	in := &s.body.in
	length, err := s.findHead()
	if err != nil {
		return err
	}
	f := &s.fields
	f.Reset(&s.ex.Request.Header, s.port)
	if length > uint64(2*s.port.HeadSize) {
		s.answer = exchange.Fail(exchange.HeadTooLarge, "the head is larger than the limit (RFC 9114, section 4.2.2)")
		return nil
	}
	if err := in.await(int(length)); err != nil {
		return err
	}
	p := in.bytes()[:length]
	in.r += int(length)
	in.hold()
	if err := qpack.Decode(p, &s.text, f); err != nil {
		return broken(decompressionFailed, err.Error())
	}
	end, err := s.body.find(f)
	if err != nil && err != errLength {
		return err
	}
	s.makeRequest(end)
	if err == errLength && !s.malformed {
		s.malformed = true
		s.answer = exchange.Fail(exchange.BadRequest, err.Error())
	}
	return nil
}

// findHead reads up to the head and returns its length.
func (s *stream) findHead() (length uint64, err error) {
	in := &s.body.in
	for range maxUnknownBeforeHead {
		var kind uint64
		if kind, length, err = in.frame(); err != nil {
			return 0, err
		}
		switch {
		case kind == frameHeaders:
			return length, nil
		case kind == frameData || misplaced(kind):
			return 0, broken(frameUnexpected, "a request that does not start with HEADERS (RFC 9114, section 4.1)")
		}
		if err := in.skip(length, &s.conn.budget); err != nil {
			return 0, err
		}
	}
	return 0, excessive(frameFlood)
}

// makeRequest makes the request of the fields.
func (s *stream) makeRequest(end bool) {
	v := s.fields.MakeRequest(&s.ex, end)
	rq := &s.ex.Request
	s.body.expect = v.Length
	switch {
	case v.Fault != "":
		s.malformed = true
		s.answer = exchange.Fail(exchange.BadRequest, v.Fault)
		return
	case v.Protocol != "" && v.Answer == nil:
		s.ex.ExtendWebSocket()
	case v.Body:
		rq.Length, rq.Body = v.Length, &s.body
	}
	s.answer = v.Answer
	if rq.Header.Has(header.Priority) {
		s.prioritise(rq.Header.Get(header.Priority))
	}
}

// prioritise sets the priority of the response from a Priority field.
func (s *stream) prioritise(text string) {
	urgency, rotates := section.Priority(text)
	s.quic.SetPriority(int8(urgency), rotates)
}
