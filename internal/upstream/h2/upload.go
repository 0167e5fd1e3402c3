package h2

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// maxTape is how much of a request's body is kept to be sent again, in bytes,
// and maxAhead how much of it is read before the request is sent.
const (
	maxTape  = 64 << 10
	maxAhead = 16 << 10
)

// tape is what was read of a request's body. It is kept until the head of the
// response is there. While an upload runs it is guarded by upload.mu.
type tape struct {
	b     []byte
	keep  atomic.Bool
	lost  bool // more was read than is kept, or the body broke off
	ended bool // b is all of the body
	mem   *[maxAhead]byte
}

var aheads = sync.Pool{New: func() any { return new([maxAhead]byte) }}

func (t *tape) drop() {
	if t.mem != nil {
		aheads.Put(t.mem)
	}
	t.b, t.mem = nil, nil
}

// add keeps p, if it is to be.
func (t *tape) add(p []byte) {
	switch {
	case t.lost:
	case !t.keep.Load() || !t.fits(p):
		t.lost, t.b = true, nil
	default:
		t.b = append(t.b, p...)
	}
}

// fits reports whether p fits.
func (t *tape) fits(p []byte) bool { return len(t.b)+len(p) <= maxTape }

// readAhead reads what is there of the body before the request is sent.
func (s *Stream) readAhead() {
	t := &s.tape
	t.keep.Store(true)
	rq := &s.ex.Request
	if !rq.Body.Ready() {
		return
	}
	t.mem = aheads.Get().(*[maxAhead]byte)
	t.b = t.mem[:0]
	for len(t.b) < maxAhead && rq.Body.Ready() {
		n, err := rq.Body.Read(t.mem[len(t.b):])
		t.b = t.mem[:len(t.b)+n]
		s.ex.Received += int64(n)
		if err == io.EOF {
			t.ended = true
			return
		}
		if err != nil {
			return // the upload learns of it again
		}
	}
}

// upload is a request body on its way to a server, while the exchange waits for
// what the server says. It outlives a try that the server did not look at.
type upload struct {
	done     chan struct{}
	finished atomic.Int64 // when it ended by exchange.Now, 0 before

	mu      sync.Mutex      // held by the sender; a new try acquires it
	news    sync.Cond       // there is a new try, or none will be
	lost    bool            // the try is over: what is read goes to the tape only
	resumed bool            // a new try has sent what the tape held
	stopped bool            // there is no further try
	broke   *exchange.Error // why the body broke off, if it did
}

const copySize = 16 << 10

var copies = sync.Pool{New: func() any { return new([copySize]byte) }}

// startUpload starts to send the body, of which the tape holds a part already and
// the first bytes were sent.
func (s *Stream) startUpload(sent int) {
	if !s.tape.lost && len(s.tape.b) == 0 {
		s.tape.keep.Store(true)
	}
	s.up = &upload{done: make(chan struct{})}
	s.up.news.L = &s.up.mu
	go s.upload(s.up, sent)
}

func (s *Stream) upload(u *upload, sent int) {
	defer close(u.done)
	defer func() { u.finished.Store(exchange.Now()) }()
	defer u.guard(s)
	ended := u.sendReadAhead(s, sent)
	p := copies.Get().(*[copySize]byte)
	defer copies.Put(p)
	body := s.ex.Request.Body
	for !ended {
		n, err := body.Read(p[:])
		s.ex.Received += int64(n)
		ended = err == io.EOF
		if err != nil && !ended {
			if n == 0 && s.onlyQuiet(u, err) {
				continue
			}
			s.breakOff(u, err)
			return
		}
		if u.goOn(s, p[:n], ended) {
			return
		}
		if !ended && !body.Ready() {
			s.flush(u)
		}
	}
	s.flush(u)
}

// guard ends the stream if the upload has panicked: what was read was the client's body.
func (u *upload) guard(s *Stream) {
	if v := recover(); v != nil {
		s.ex.Broken(v, "request body")
		s.breakOff(u, &exchange.Error{Reason: exchange.Internal, Err: fmt.Errorf("the request body: %v", v)})
	}
}

// sendReadAhead sends what was read ahead, but for what was sent, and reports whether that is all.
func (u *upload) sendReadAhead(s *Stream, sent int) (ended bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.resumed {
		u.lost = s.push(s.tape.b[sent:], s.tape.ended) != nil
	}
	return s.tape.ended
}

// goOn sends and keeps p, the last of the body if ended is true. When the attempt is over,
// it is kept for the next one; data that exceeds the limit waits for that, since an
// incomplete body cannot be sent again. It reports whether the body is no longer needed.
func (u *upload) goOn(s *Stream, p []byte, ended bool) (over bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for {
		if !u.lost {
			u.lost = s.push(p, ended) != nil
		}
		if !u.lost || u.stopped || s.tape.lost || !s.tape.keep.Load() || s.tape.fits(p) {
			s.tape.add(p)
			s.tape.ended = ended
			return u.lost && s.tape.lost
		}
		u.news.Wait()
	}
}

// resume sends what the tape holds, but for what was sent, as a new try. u.mu is held.
func (u *upload) resume(s *Stream, sent int) {
	u.resumed = true
	u.lost = s.push(s.tape.b[sent:], s.tape.ended) != nil // who waits for the answer learns why
	u.news.Broadcast()
}

func (s *Stream) flush(u *upload) {
	u.mu.Lock()
	c := s.conn
	u.mu.Unlock()
	c.mu.Flush()
}

// onlyQuiet reports whether an error of the client's body is a pause that does
// not matter: in a stream of two directions the client may listen for as long as
// the server has something to say.
func (s *Stream) onlyQuiet(u *upload, err error) bool {
	e := (*exchange.Error)(nil)
	if !errors.As(err, &e) || e.Reason != exchange.RequestTimeout || s.ex.Request.Proto < exchange.HTTP2 {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.answered && s.gone == nil && !s.remote
}

// breakOff ends the stream when the client's body was incomplete, so that waiting for the
// server ends.
func (s *Stream) breakOff(u *upload, err error) {
	e := (*exchange.Error)(nil)
	if !errors.As(err, &e) {
		e = &exchange.Error{Reason: exchange.ClientClosed, Err: err}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s.tape.lost, u.broke = true, e
	c := s.conn
	c.mu.Lock()
	if s.gone == nil && !s.complete() {
		s.gone = e
	}
	s.body.Wake.Raise()
	c.mu.Unlock()
}

// stop ends the upload and waits until it has. It reports whether the upload had
// ended before, with all of the body. The stream has left its connection.
func (u *upload) stop(s *Stream) (before bool) {
	before = u.finished.Load() != 0
	if !before {
		s.ex.Request.Body.Close()
		s.wakeUp.Raise()
		u.mu.Lock()
		u.stopped = true
		u.news.Broadcast()
		u.mu.Unlock()
	}
	<-u.done
	return before
}

// push sends p, in as many frames as needed and as the windows allow, and the
// trailers if it is the end. It returns when all is in the buffer, and an error
// when the stream has ended.
func (s *Stream) push(p []byte, end bool) error {
	if len(p) == 0 && !end {
		return nil
	}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if s.gone != nil || s.local {
			return errOver
		}
		n := int64(min(len(p), maxPiece))
		n = min(n, s.window, c.mu.window)
		if (n > 0 || len(p) == 0) && len(c.mu.Out) < maxOut {
			n = max(n, 0)
			s.appendData(p[:n], end && int(n) == len(p))
			s.active.Store(exchange.Now())
			if p = p[n:]; len(p) == 0 {
				return nil
			}
			continue
		}
		if err := s.waitToSend(); err != nil {
			return err
		}
	}
}

// maxPiece is the largest content of a DATA frame, in bytes.
const maxPiece = 1 << 14

var errOver = errors.New("the stream has ended")

// waitToSend waits until sending may be possible. conn.mu is held except while
// waiting. A server that reads nothing for too long loses the connection, as in
// HTTP/1.1.
func (s *Stream) waitToSend() error {
	c := s.conn
	if c.mu.WriteLocked() {
		return nil
	}
	s.blocked = true
	c.mu.blocked++
	c.mu.Unlock()
	ok := s.wakeUp.Wait(c.settings.WriteIdle)
	c.mu.Lock()
	s.blocked = false
	c.mu.blocked--
	if ok || s.gone != nil {
		return nil
	}
	s.gone = &exchange.Error{Reason: exchange.UpstreamTimeout, Err: errors.New("server " + c.settings.Name + " did not read the request body in time")}
	s.body.Wake.Raise()
	return netconn.ErrTimeout
}
