package h2

import (
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// Read reads from the body of the response.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.ex.SignedOut() {
		s.broken = exchange.ErrSignedOut
		return 0, s.broken
	}
	r := (*receiver)(s)
	n, err := s.body.Read(p, &s.conn.mu.Writer, r)
	if err != nil && err != io.EOF {
		s.broken = err
	}
	return n, err
}

// receiver is what the stream is to its body.
type receiver Stream

// OverLocked returns why nothing comes.
func (r *receiver) OverLocked() error {
	switch s := (*Stream)(r); {
	case s.complete():
		return io.EOF
	case s.gone != nil:
		return s.gone
	}
	return nil
}

// TookLocked grants the server what was read.
func (r *receiver) TookLocked(n int64) (whole bool) {
	s, c := (*Stream)(r), r.conn
	if !s.remote && s.gone == nil {
		if by := s.room.Read(n); by > 0 {
			c.mu.Out = http2.AppendWindowUpdate(c.mu.Space(), s.id, by)
		}
	}
	return s.complete()
}

// Await waits as long as the server may pause.
func (r *receiver) Await() error {
	w := (*Stream)(r).watch(r.conn.settings.BodyIdle)
	if err := w.wait(); err == errLate {
		return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("server %s paused for too long in the body of its answer", r.conn.settings.Name)}
	} else if err != nil {
		return err
	}
	return nil
}

// complete reports whether the response has come to its end. conn.mu is held.
func (s *Stream) complete() bool { return s.remote && s.whole }

// End makes the trailers known, once, and returns io.EOF.
func (r *receiver) End() error {
	if !r.concluded {
		r.concluded = true
		r.conn.mu.Lock()
		r.ex.Response.Trailer, r.trailer = r.trailer, r.ex.Response.Trailer
		r.conn.mu.Unlock()
	}
	return io.EOF
}

// Ready reports whether Read would not wait.
func (s *Stream) Ready() bool {
	if s.body.HasCurrent() || s.concluded {
		return true
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return !s.body.EmptyLocked() || s.remote || s.gone != nil
}

// errLate means that a wait timed out.
var errLate = errors.New("late")

// A wait looks now and then whether the client is still there: after lookFirst,
// then after pauses that double up to maxLook.
const (
	lookFirst = 500 * time.Millisecond
	maxLook   = 2 * time.Second
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
	if s.body.Wake.Lower() {
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
		if s.body.Wake.Wait(d) {
			return nil
		}
		if s.held && s.ex.Request.Body.Ready() {
			return errLate // the client did not wait
		}
		if s.ex.SignedOut() {
			return exchange.ErrSignedOut
		}
		if s.ex.Front.Gone() {
			return &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the client left before the answer was there")}
		}
		w.look = min(2*w.look, maxLook)
	}
}
