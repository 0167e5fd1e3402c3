package h2

import (
	"errors"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
)

// stream is one request and its response. It is the Front of its exchange. Its
// memory is used again when worker and reader are both done with it.
type stream struct {
	// constant while the stream lives
	conn *Conn
	id   uint32
	port *exchange.Port
	// answer, if it is not nil, rejects the request. malformed means that it is answered
	// with a reset only (RFC 9113, section 8.1.1).
	answer    *exchange.Answer
	malformed bool

	// tunnelIdle is how long an extended CONNECT may be silent; 0 for other
	// requests. It is set before bytes move.
	tunnelIdle time.Duration

	// owned by the worker
	ex   exchange.Exchange
	body body

	// guarded by conn.mu
	piece   piece
	trailer header.List
	facts

	wake http2.Signal // the sender looks up
}

// facts is the state of a stream.
type facts struct {
	remote    bool         // the client has sent everything
	local     bool         // we have: END_STREAM or a reset is in the buffer
	begun     bool         // the final response has begun
	gone      error        // why the stream ended early
	window    int64        // send window
	receive   http2.Window // receive window
	expect    int64        // what Content-Length says, or -1
	received  int64
	urgency   uint8
	rotates   bool // shares its turn with others of its urgency
	signalled bool // the client sent a priority
}

// piece is what a stream has to send at the moment.
type piece struct {
	head       []byte // a field block, sent first
	data       []byte
	end        bool // nothing comes behind
	queued     bool // not all of it is in the buffer
	tick       uint32
	next, prev *stream
}

var streams = sync.Pool{New: func() any {
	return &stream{wake: http2.NewSignal(), body: body{Body: http2.Body{Wake: http2.NewSignal()}}}
}}

// newStream returns a stream whose exchange has begun.
func (c *Conn) newStream(id uint32) *stream {
	s := streams.Get().(*stream)
	s.conn, s.id, s.port = c, id, c.port
	s.window, s.receive = 0, http2.NewWindow()
	s.expect = -1
	s.urgency, s.rotates = defaultUrgency, true
	s.body.stream = s
	ex := &s.ex
	ex.Reset(&c.facts, s)
	ex.Place, ex.Limits = c.port.Place, c.port.Limits
	ex.ClientIP = c.facts.Remote.Addr()
	ex.Times.Start = exchange.Now()
	ex.Request.Scheme = c.facts.Scheme
	ex.Request.Proto = exchange.HTTP2
	return s
}

// recycle releases the memory of a stream. No references to it may remain.
func (s *stream) recycle() {
	s.body.reset()
	s.trailer.Reset()
	s.wake.Lower()
	s.conn, s.port, s.answer, s.malformed, s.tunnelIdle = nil, nil, nil, false, 0
	s.facts = facts{}
	s.piece = piece{}
	streams.Put(s)
}

// stream returns an open stream, or nil. c.mu is held.
func (c *Conn) stream(id uint32) *stream { return c.mu.streams.Get(id) }

// The last streams that ended are remembered, so that a frame that was in transit when a
// stream was reset can be distinguished from a protocol error. Each entry has the shifted
// number, and in the low bit whether headgate reset it.
const endedByReset = 1

// closeLocked removes a stream that has ended on both sides, or was reset, from
// the table.
func (c *Conn) closeLocked(s *stream, reset bool) {
	if !c.mu.streams.Remove(s.id) {
		return
	}
	c.remember(s.id, reset)
	if c.mu.streams.Len() == 0 {
		c.mu.quiet = exchange.Now()
		if c.draining.Load() || s.port.KeepAlive == 0 {
			c.nc.Kick()
		}
	}
}

func (c *Conn) remember(id uint32, reset bool) {
	note := id << 1
	if reset {
		note |= endedByReset
	}
	c.mu.gone[c.mu.turn%len(c.mu.gone)] = note
	c.mu.turn++
}

// ended reports whether a stream is among the last that ended, and whether it
// was by our reset. c.mu is held.
func (c *Conn) ended(id uint32) (known, reset bool) {
	for _, note := range c.mu.gone {
		if note>>1 == id {
			return true, note&endedByReset != 0
		}
	}
	return false, false
}

// reset ends a stream from our side. c.mu is held; the frame is only collected.
func (c *Conn) resetLocked(s *stream, why http2.Code, err error) {
	if s.gone == nil {
		s.gone = err
	}
	if !s.local {
		s.local = true
		c.mu.Out = http2.AppendRSTStream(c.mu.Space(), s.id, why)
	} else if !s.remote {
		c.mu.Out = http2.AppendRSTStream(c.mu.Space(), s.id, why)
	}
	s.remote = true
	c.mu.queue.remove(s)
	c.closeLocked(s, true)
	s.lookUp()
}

// lookUp makes sender and body reader of a stream look at its state.
func (s *stream) lookUp() {
	s.wake.Raise()
	s.body.Wake.Raise()
}

// finish ends what the exchange left open, and releases the stream.
func (s *stream) finish() {
	c := s.conn
	c.mu.Lock()
	c.mu.Active--
	switch {
	case s.gone != nil:
	case !s.local:
		c.resetLocked(s, http2.InternalError, errAborted)
	case !s.remote:
		// The answer is complete, and the rest of the request is not needed
		// (RFC 9113, section 8.1).
		c.resetLocked(s, http2.NoError, errAborted)
	}
	c.closeLocked(s, false)
	c.grantLocked(s.body.UnreadLocked())
	c.mu.Unlock()
	c.mu.Flush()
	s.recycle()
}

var errAborted = errors.New("the response was abandoned")
