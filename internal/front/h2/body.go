package h2

import (
	"errors"
	"io"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// connWindow is how much unread data a client may have, in bytes. The window of the
// connection is shared by all its streams; it is opened only as bodies are read, and
// so it limits the memory.
const connWindow = 2 << 20

// body is the body of a request. The reader of the connection fills it; one
// goroutine reads it, which need not be the worker; Close may be called by
// another.
type body struct {
	http2.Body
	stream *stream

	// owned by the goroutine that reads
	begun bool
	ended bool

	// guarded by conn.mu
	closed bool // no reader is left
	broken error
}

// reset readies the body's memory for another stream.
func (b *body) reset() {
	b.Reset()
	*b = body{Body: b.Body}
}

// Read reads from the body. Before the first byte it sends 100 Continue to a client that
// waits for it.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s := b.stream
	if !b.begun {
		b.begun = true
		if s.ex.Request.Continue {
			s.letGo()
		}
	}
	return b.Body.Read(p, &s.conn.mu.Writer, (*receiver)(b))
}

// receiver is what the body is to http2.Body.
type receiver body

// OverLocked returns why nothing comes.
func (r *receiver) OverLocked() error {
	s := r.stream
	switch {
	case r.closed:
		return &exchange.Error{Reason: exchange.ClientClosed, Err: errGivenUp}
	case r.broken != nil:
		return &exchange.Error{Reason: exchange.BadRequest, Err: r.broken}
	case s.gone != nil:
		return &exchange.Error{Reason: exchange.ClientClosed, Err: s.gone}
	case s.remote:
		return io.EOF
	}
	return nil
}

// TookLocked grants the client what was read.
func (r *receiver) TookLocked(n int64) (whole bool) {
	s := r.stream
	s.grantLocked(n)
	s.conn.grantLocked(n)
	return s.remote && s.gone == nil && r.broken == nil && !r.closed
}

// Await waits as long as the client may pause.
func (r *receiver) Await() error {
	idle := r.stream.port.Limits.BodyIdle
	if r.stream.tunnelIdle > 0 {
		idle = r.stream.tunnelIdle
	}
	if !r.Wake.Wait(idle) {
		return &exchange.Error{Reason: exchange.RequestTimeout, Err: errors.New("the request body paused for too long")}
	}
	return nil
}

// End makes the trailers known, once, and returns io.EOF.
func (r *receiver) End() error {
	s := r.stream
	if !r.ended {
		r.ended = true
		s.conn.mu.Lock()
		s.ex.Request.Trailer, s.trailer = s.trailer, s.ex.Request.Trailer
		s.conn.mu.Unlock()
	}
	return io.EOF
}

// Ready reports whether Read would not wait.
func (b *body) Ready() bool {
	if b.HasCurrent() || b.ended {
		return true
	}
	s, c := b.stream, b.stream.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return !b.EmptyLocked() || s.remote || s.gone != nil || b.closed || b.broken != nil
}

// Whole returns the body if it has arrived in one piece and its length was known
// before. It may be called again until the body is read.
func (b *body) Whole() ([]byte, bool) {
	s, c := b.stream, b.stream.conn
	if b.begun || s.ex.Request.Length < 0 {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := b.SingleLocked()
	if all == nil || !s.remote || s.gone != nil || b.broken != nil || s.trailer.Len() > 0 {
		return nil, false
	}
	return all, true
}

// Close closes the body. A Read that waits returns.
func (b *body) Close() error {
	s := b.stream
	c := s.conn
	c.mu.Lock()
	if !b.closed {
		b.closed = true
		c.grantLocked(b.SizeLocked())
		b.DropLocked()
		b.Wake.Raise()
	}
	c.mu.Unlock()
	return nil
}

var errGivenUp = errors.New("the body is no longer needed")
