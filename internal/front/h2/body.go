package h2

import (
	"errors"
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// What a client may have in memory here, in bytes. A stream begins with the
// window of RFC 9113 and gets a larger one when its body is taken as fast as it
// comes. The window of the connection holds for all its streams together; it is
// granted anew only as bodies are taken, and so it is the bound on memory.
const (
	streamWindow = 1 << 20
	connWindow   = 2 << 20
)

// body is the body of a request. The reader of the connection fills it; one
// goroutine reads it, which need not be the worker; Close may be called by
// another.
type body struct {
	stream *stream
	wake   http2.Signal

	// owned by the goroutine that reads
	current *http2.Chunk
	begun   bool
	ended   bool
	all     []byte // what Whole returned and nobody has read

	// guarded by conn.mu
	list   http2.Chunks
	closed bool // nobody wants more
	broken error
}

// reset readies the body's memory for another stream.
func (b *body) reset() {
	b.wake.Lower()
	*b = body{wake: b.wake}
}

// drop gives back what was not read.
func (b *body) drop() {
	if b.current != nil {
		b.current.Give()
		b.current = nil
	}
	b.list.Drop()
}

// unread returns how many bytes lie here that were not granted anew. conn.mu is
// held.
func (b *body) unread() int64 {
	n := int64(b.list.Size())
	if b.current != nil {
		n += int64(b.current.W - b.current.R)
	}
	return n
}

// put adds a copy of p. conn.mu is held.
func (b *body) put(p []byte) {
	b.list.Put(p)
	b.wake.Raise()
}

// putChunk adds a chunk, which the body owns from then on. conn.mu is held.
func (b *body) putChunk(k *http2.Chunk) {
	b.list.Add(k)
	b.wake.Raise()
}

// Read reads from the body. Before the first byte it tells a client that waits
// for it to go on.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.all != nil {
		n := copy(p, b.all)
		if b.all = b.all[n:]; len(b.all) > 0 {
			return n, nil
		}
		b.all = nil
		return n, io.EOF
	}
	s := b.stream
	if !b.begun {
		b.begun = true
		if s.ex.Request.Continue {
			s.letGo()
		}
	}
	for b.current == nil {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	k := b.current
	n := copy(p, k.Rest())
	if k.R += n; k.R == k.W {
		k.Give()
		b.current = nil
	}
	end := b.took(n)
	if end {
		return n, b.end()
	}
	return n, nil
}

// next waits for a chunk and makes it the current one.
func (b *body) next() error {
	s, c := b.stream, b.stream.conn
	for {
		c.mu.Lock()
		switch {
		case b.closed:
			c.mu.Unlock()
			return &exchange.Error{Reason: exchange.ClientClosed, Err: errGivenUp}
		case b.broken != nil:
			c.mu.Unlock()
			return &exchange.Error{Reason: exchange.BadRequest, Err: b.broken}
		case !b.list.Empty():
			b.current = b.list.Take()
			c.mu.Unlock()
			return nil
		case s.gone != nil:
			c.mu.Unlock()
			return &exchange.Error{Reason: exchange.ClientClosed, Err: s.gone}
		case s.remote:
			c.mu.Unlock()
			return b.end()
		}
		c.mu.Unlock()
		if !b.wake.Wait(b.idle()) {
			return &exchange.Error{Reason: exchange.RequestTimeout, Err: errors.New("the request body paused for too long")}
		}
	}
}

// idle is how long the client may pause.
func (b *body) idle() time.Duration {
	s := b.stream
	if s.tunnelIdle > 0 {
		return s.tunnelIdle
	}
	return s.port.Limits.BodyIdle
}

// took grants the client what was read, and reports whether that was the end.
func (b *body) took(n int) bool {
	s, c := b.stream, b.stream.conn
	c.mu.Lock()
	s.grantLocked(int64(n))
	c.grantLocked(int64(n))
	end := b.current == nil && b.list.Empty() && s.remote && s.gone == nil && b.broken == nil
	write := len(c.mu.out) > 0 && !c.mu.writing
	c.mu.Unlock()
	if write {
		c.flush()
	}
	return end
}

// end makes the trailers known, once, and returns io.EOF.
func (b *body) end() error {
	s := b.stream
	if !b.ended {
		b.ended = true
		s.conn.mu.Lock()
		s.ex.Request.Trailer, s.trailer = s.trailer, s.ex.Request.Trailer
		s.conn.mu.Unlock()
	}
	return io.EOF
}

// Ready reports whether Read would not wait.
func (b *body) Ready() bool {
	if b.current != nil || b.ended {
		return true
	}
	s, c := b.stream, b.stream.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return !b.list.Empty() || s.remote || s.gone != nil || b.closed || b.broken != nil
}

// Whole returns the body if all of it is at hand in one piece and its length was
// known before. It may be asked again until the body is read.
func (b *body) Whole() ([]byte, bool) {
	s, c := b.stream, b.stream.conn
	if b.begun || s.ex.Request.Length < 0 {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.current == nil && b.list.Single() {
		b.current = b.list.Take()
	}
	if b.current == nil || !b.list.Empty() || !s.remote || s.gone != nil || b.broken != nil || s.trailer.Len() > 0 {
		return nil, false
	}
	return b.current.Rest(), true
}

// Close gives the body up. A Read that waits returns.
func (b *body) Close() error {
	s := b.stream
	c := s.conn
	c.mu.Lock()
	if !b.closed {
		b.closed = true
		c.grantLocked(int64(b.list.Size()))
		b.list.Drop()
		b.wake.Raise()
	}
	c.mu.Unlock()
	return nil
}

var errGivenUp = errors.New("the body is not wanted any more")
