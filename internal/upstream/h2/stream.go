package h2

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
)

// Errors that Do comes back with, to be found by errors.Is.
var (
	// ErrUnprocessed means that the server has not processed the request and will not: it
	// can be sent again, whatever its method.
	ErrUnprocessed = errors.New("the request was not processed")
	// ErrHTTP1 means that the server requires HTTP/1.1.
	ErrHTTP1 = errors.New("the server wants HTTP/1.1")
	// ErrLost says that the connection ended before the answer: the server may
	// have seen the request.
	ErrLost = errors.New("the connection was lost")
)

// continueWait is how long to wait for a server's 100 Continue (RFC 9110, section 10.1.1).
// A client need not wait either: after continueLook, and then at longer intervals, it is
// checked whether the body has begun to arrive.
const (
	continueWait = time.Second
	continueLook = 5 * time.Millisecond
)

// Stream is one request and the body of its response. It belongs to the goroutine
// of its exchange.
type Stream struct {
	ex    *exchange.Exchange
	owner Owner
	limit time.Duration // of the time to the head; 0 is none
	// careful is whether an idle connection is always checked.
	careful bool

	// of the try under way
	conn *Conn
	id   uint32

	// what was read of the request's body, to be sent and to be sent again
	tape  tape
	up    *upload // nil while no other goroutine sends
	held  bool    // the body waits for 100 Continue
	since int64   // start of the time to the head

	active    atomic.Int64 // when a piece of the request was sent last
	body      http2.Body   // its Wake brings all news for the exchange
	concluded bool
	broken    error // why the body broke off, if it did

	// guarded by conn.mu
	facts
	fields, trailer header.List
	interims        []interim

	wakeUp http2.Signal // sending may be possible
}

// facts is the state of a stream.
type facts struct {
	local    bool            // we have sent everything
	remote   bool            // the server sends no more
	whole    bool            // the response came to its end
	answered bool            // its head came
	listed   bool            // the connection knows the stream
	placed   bool            // the stream has a place on the connection
	blocked  bool            // the sender waits
	alone    bool            // no other request was admitted to the connection before it
	gone     *exchange.Error // why the stream ended early
	status   int
	length   int64        // Content-Length, or -1
	got      int64        // bytes of the body that came
	noBody   bool         // the request is a HEAD
	window   int64        // send window
	room     http2.Window // receive window
}

// interim is a 1xx response.
type interim struct {
	status int
	fields header.List
}

var streams = sync.Pool{New: func() any {
	return &Stream{body: http2.Body{Wake: http2.NewSignal()}, wakeUp: http2.NewSignal()}
}}

// Owner is notified when the response of a stream is closed: with Broke if it was
// incomplete, else with Ended.
type Owner interface {
	Ended()
	Broke(err error)
}

// NewStream starts the request of an exchange, whose time to the response head
// counts from began.
func NewStream(ex *exchange.Exchange, began int64, owner Owner) *Stream {
	s := streams.Get().(*Stream)
	s.ex, s.owner, s.since, s.limit = ex, owner, began, ex.Limits.RequestTimeout
	s.held = ex.Request.Continue && ex.Request.Body != nil && !ex.Request.Body.Ready()
	s.careful = false
	return s
}

// Do sends the request on a connection on which a place was reserved, and makes
// the server's answer the response of the exchange, with the stream as its body.
// head is the field block. After an error the stream can be sent again if
// Repeatable says so; else End must follow.
func (s *Stream) Do(c *Conn, head []byte) error {
	if err := s.send(c, head); err != nil {
		return err
	}
	if err := s.answer(); err != nil {
		s.leave()
		return s.withoutHead(err)
	}
	s.respond()
	return nil
}

// send starts a try.
func (s *Stream) send(c *Conn, head []byte) error {
	again := s.conn != nil
	if s.up != nil {
		s.up.mu.Lock()
		defer s.up.mu.Unlock()
	}
	s.reset(c)
	if !again && !s.held && s.ex.Request.Body != nil {
		s.readAhead()
	}
	if s.up != nil && s.up.broke != nil {
		s.leave()
		return s.up.broke
	}
	sent, all, err := s.open(head)
	if s.alone {
		c.freed() // others may start now
	}
	switch {
	case err != nil:
		s.leave()
		return err
	case all, s.held:
		c.mu.Flush()
		return nil
	case s.up == nil:
		c.mu.Flush()
		s.startUpload(sent)
		return nil
	}
	s.up.resume(s, sent)
	c.mu.Flush()
	return nil
}

// reset forgets the try before.
func (s *Stream) reset(c *Conn) {
	s.conn, s.facts = c, facts{placed: c != nil, length: -1, noBody: s.ex.Request.Method == "HEAD"}
	s.body.Reset()
	s.fields.Reset()
	s.trailer.Reset()
	clear(s.interims)
	s.interims = s.interims[:0]
	s.wakeUp.Lower()
}

// open opens the stream and sends along what it can of the body. It returns how
// much that was, and whether the request is complete with it.
func (s *Stream) open(head []byte) (sent int, all bool, err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.next > lastStream {
		c.mu.away = true
	}
	if c.mu.Err != nil || c.mu.away || c.stale(s.careful) {
		return 0, false, &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: the connection to server %s ends", ErrUnprocessed, c.settings.Name)}
	}
	s.id = c.mu.next
	c.mu.next += 2
	s.window, s.room = c.mu.initial, http2.NewWindow()
	s.listed = true
	s.alone = c.mu.alone
	c.mu.fresh, c.mu.alone = false, false
	c.mu.streams.Add(s.id, s)
	c.askAfterRest()
	// A body of the client is sent as one, even if it has ended already and is empty: gRPC
	// servers distinguish a call without a message from one without a body.
	empty := s.ex.Request.Body == nil
	prefix := byte(0)
	if !c.mu.begun {
		c.mu.begun, prefix = true, http2.TableSizeZero
	}
	c.mu.Out = http2.AppendBlock(c.mu.Space(), s.id, prefix, head, empty)
	s.local = empty
	n := len(s.tape.b)
	if empty || s.held || n == 0 && !s.tape.ended || n > http2.MaxFrameSize || int64(n) > max(0, min(s.window, c.mu.window)) {
		return 0, empty, nil
	}
	s.appendData(s.tape.b, s.tape.ended)
	return n, s.tape.ended, nil
}

// lookAfter is how long a connection may be idle before it is checked when a request that
// could be sent again uses it. Other requests always check it.
const lookAfter = int64(time.Millisecond)

// stale reports whether an idle connection has unread data: most often, the server has
// closed it. On a new one it is the rest of the preface. Data is expected while other streams
// are open, so a careful stream checks then whether the server has closed its side: the end of
// a response may arrive after the whole response was passed on. conn.mu is held.
func (c *Conn) stale(careful bool) bool {
	switch {
	case c.mu.fresh:
		return false
	case c.mu.streams.Len() > 0:
		return careful && c.nc.Peer() != netconn.Present
	}
	return (careful || exchange.Now()-c.heard.Load() > lookAfter) && !c.nc.Silent()
}

// Careful makes the stream check an idle connection before it starts there,
// however short the idle time: the request could not be sent again.
func (s *Stream) Careful() { s.careful = true }

// askAfterRest sends a PING along with the request to a server that was idle for a
// while.
func (c *Conn) askAfterRest() {
	now := exchange.Now()
	if c.mu.pinged == 0 && now-c.heard.Load() > int64(restPing) {
		c.mu.pinged = now
		c.mu.Out = http2.AppendPing(c.mu.Space(), 0, []byte("headgate"))
		c.nc.Kick() // the reader waits for the answer from now on
	}
}

// appendData appends one DATA frame, and the trailers if it is the last. conn.mu
// is held, and the windows are large enough.
func (s *Stream) appendData(p []byte, end bool) {
	c := s.conn
	trailers := end && s.ex.RequestTrailer().Len() > 0
	flags := uint8(0)
	if end && !trailers {
		flags = http2.FlagEndStream
	}
	if len(p) > 0 || flags != 0 {
		b := http2.AppendFrame(c.mu.Space(), len(p), http2.FrameData, flags, s.id)
		c.mu.Out = append(b, p...)
	}
	s.window -= int64(len(p))
	c.mu.window -= int64(len(p))
	c.mu.useless = max(0, c.mu.useless-4)
	if trailers {
		c.mu.Out = http2.AppendBlock(c.mu.Space(), s.id, 0, AppendFields(nil, &s.ex.Request.Trailer), true)
	}
	if end {
		s.local = true
		if s.remote {
			c.closeLocked(s)
		}
	}
}

// AppendFields appends the fields of a list to a field block.
func AppendFields(b []byte, list *header.List) []byte {
	all := list.All()
	for i := range all {
		f := &all[i]
		if !f.ID.HopByHop() {
			b = http2.AppendField(b, f.ID, f.Name, f.Value)
		}
	}
	return b
}

// Repeatable reports whether all of the request can be sent once more.
func (s *Stream) Repeatable() bool {
	if s.ex.Request.Body == nil || s.held {
		return true
	}
	if s.up != nil {
		s.up.mu.Lock()
		defer s.up.mu.Unlock()
	}
	return !s.tape.lost
}

// Close ends the exchange on the stream: what is not whole is reset. Views into
// the response die.
func (s *Stream) Close() error {
	if owner, broken := s.owner, s.broken; s.ex != nil {
		if s.End(); broken != nil {
			owner.Broke(broken)
		} else {
			owner.Ended()
		}
	}
	return nil
}

// End abandons the request, and releases the memory of the stream. It reports whether the
// body of the request was not abandoned with it, because a reader waited for more of it.
func (s *Stream) End() (kept bool) {
	s.leave()
	kept = s.up == nil || s.up.stop(s)
	s.tape.drop()
	s.reset(nil)
	*s = Stream{fields: s.fields, trailer: s.trailer, interims: s.interims[:0], body: s.body, wakeUp: s.wakeUp}
	streams.Put(s)
	return kept
}

// Abandon is End after a panic. c is the connection on which a place was reserved, nil for
// none, whether the try there has begun or not.
func (s *Stream) Abandon(c *Conn) {
	if c != nil && (s.conn != c || !s.placed) {
		c.Release()
	}
	s.End()
}

// leave removes the stream from its connection, and resets it if it is not
// complete.
func (s *Stream) leave() {
	c := s.conn
	if c == nil {
		return
	}
	c.mu.Lock()
	if s.gone == nil {
		s.gone = errLeft
	}
	if s.listed && c.mu.Err == nil {
		c.mu.Out = http2.AppendRSTStream(c.mu.Space(), s.id, http2.Cancel)
	}
	c.closeLocked(s)
	s.wakeUp.Raise()
	placed := s.placed
	if s.placed {
		s.placed = false
		c.releaseLocked()
	}
	write := c.mu.DueLocked()
	c.mu.Unlock()
	if write {
		c.mu.Flush()
	}
	if placed {
		c.freed()
	}
}

// errLeft is the error of the sender when the exchange has ended.
var errLeft = &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the exchange has ended")}
