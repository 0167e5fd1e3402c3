package h2

import (
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// body is what came of a response's body and was not read yet. It is guarded by
// the connection's mu, but for current, which the exchange owns.
type body struct {
	current *http2.Chunk
	list    http2.Chunks
}

// drop gives all memory back.
func (b *body) drop() {
	if b.current != nil {
		b.current.Give()
		b.current = nil
	}
	b.list.Drop()
}

// Read reads from the body of the response.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b := &s.body
	if b.current == nil {
		if err := s.next(); err != nil {
			if err != io.EOF {
				s.broken = err
			}
			return 0, err
		}
	}
	k := b.current
	n := copy(p, k.Rest())
	if k.R += n; k.R == k.W {
		k.Give()
		b.current = nil
	}
	if s.took(n) {
		return n, s.conclude()
	}
	return n, nil
}

// next waits for a chunk and makes it the current one.
func (s *Stream) next() error {
	c := s.conn
	w := s.watch(s.conn.settings.BodyIdle)
	for {
		c.mu.Lock()
		switch {
		case !s.body.list.Empty():
			s.body.current = s.body.list.Take()
			c.mu.Unlock()
			return nil
		case s.complete():
			c.mu.Unlock()
			return s.conclude()
		case s.gone != nil:
			err := s.gone
			c.mu.Unlock()
			return err
		}
		c.mu.Unlock()
		if err := w.wait(); err == errLate {
			return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("server %s paused for too long in the body of its answer", c.settings.Name)}
		} else if err != nil {
			return err
		}
	}
}

// complete reports whether the response has come to its end. conn.mu is held.
func (s *Stream) complete() bool { return s.remote && s.whole }

// took grants the server what was read, and reports whether that was the end.
func (s *Stream) took(n int) bool {
	c := s.conn
	c.mu.Lock()
	s.grantLocked(int64(n))
	end := s.body.current == nil && s.body.list.Empty() && s.complete()
	write := len(c.mu.out) > 0 && !c.mu.writing
	c.mu.Unlock()
	if write {
		c.flush()
	}
	return end
}

// grantLocked gives the server the room of n bytes on the stream anew. A server
// that uses up its window while we keep up with it gets a larger one.
func (s *Stream) grantLocked(n int64) {
	s.consumed += n
	if s.remote || s.gone != nil || s.consumed < s.target/4 {
		return
	}
	if s.room < s.target/2 && s.target < streamWindow {
		grow := min(s.target, streamWindow-s.target)
		s.target += grow
		s.consumed += grow
	}
	c := s.conn
	c.mu.out = http2.AppendWindowUpdate(c.space(), s.id, s.consumed)
	s.room += s.consumed
	s.consumed = 0
}

// conclude makes the trailers known, once, and returns io.EOF.
func (s *Stream) conclude() error {
	if !s.concluded {
		s.concluded = true
		s.conn.mu.Lock()
		s.ex.Response.Trailer, s.trailer = s.trailer, s.ex.Response.Trailer
		s.conn.mu.Unlock()
	}
	return io.EOF
}

// Ready reports whether Read would not wait.
func (s *Stream) Ready() bool {
	if s.body.current != nil || s.concluded {
		return true
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return !s.body.list.Empty() || s.remote || s.gone != nil
}

// errLate says that a wait took longer than it may.
var errLate = errors.New("late")

// A wait looks now and then whether the client is still there: after lookFirst,
// then after pauses that double up to lookMost.
const (
	lookFirst = 500 * time.Millisecond
	lookMost  = 2 * time.Second
)

// waiting is a wait for news of a stream.
type waiting struct {
	s     *Stream
	limit time.Duration // of silence in both directions; 0 is none
	since int64
	look  time.Duration
}

func (s *Stream) watch(limit time.Duration) waiting {
	return waiting{s: s, limit: limit, look: lookFirst}
}

// wait waits for news. It returns errLate when there were none for the limit, and
// an *exchange.Error when the client has left.
func (w *waiting) wait() error {
	s := w.s
	if s.wake.Lower() {
		return nil
	}
	if w.since == 0 {
		w.since = exchange.Now()
	}
	for {
		d := w.look
		if w.limit > 0 {
			last := max(w.since, s.active.Load())
			left := time.Duration(last + int64(w.limit) - exchange.Now())
			if left <= 0 {
				return errLate
			}
			d = min(d, left)
		}
		if s.wake.Wait(d) {
			return nil
		}
		if s.held && s.ex.Request.Body.Ready() {
			return errLate // the client did not wait
		}
		if s.ex.Front.Gone() {
			return &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the client left before the answer was there")}
		}
		w.look = min(2*w.look, lookMost)
	}
}
