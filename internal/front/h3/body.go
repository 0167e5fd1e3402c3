package h3

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/section"
	"headgate/internal/proto/qpack"
)

// body is the body of a request. One goroutine reads it, which need not be the
// worker; Close may be called by another.
type body struct {
	stream *stream

	// owned by the goroutine that reads
	in       input
	left     uint64 // of the DATA frame under way
	expect   int64  // what Content-Length says, or -1
	received int64
	until    int64 // the read deadline that quic-go knows
	found    bool  // a frame after the head was read
	trailing uint64
	trails   bool // that frame is HEADERS, of trailing bytes
	begun    bool
	ended    bool
	broken   bool // the body breaks a rule: the stream is reset

	mu struct {
		sync.Mutex
		closed bool // no reader is left
	}
}

// reset readies the body's memory for another stream.
func (b *body) reset() {
	buf := b.in.buf
	*b = body{}
	b.in.buf = buf
}

// bodyWait is how long to wait for the end of a request without a known length: in HTTP/3
// the end of a request is the end of its stream, which may arrive after its head. After
// that it is forwarded as one with a body.
const bodyWait = time.Second

// find determines whether a body follows the head, so that a request without one
// does not look like one of unknown length. end means that nothing follows.
func (b *body) find(f *section.Section) (end bool, err error) {
	in := &b.in
	if f.GRPC() {
		return false, nil
	}
	if in.r == in.w && in.end {
		return true, nil
	}
	if f.Length() > 0 || f.Waits() || f.Method() == "CONNECT" {
		return false, nil
	}
	patient := f.Length() == 0
	switch f.Method() {
	case "GET", "HEAD", "OPTIONS", "TRACE", "DELETE":
	default:
		patient = true
	}
	if patient {
		b.stream.quic.SetReadDeadline(time.Now().Add(bodyWait))
	}
	switch err := b.next(); {
	case err == errEnd:
		return true, nil
	case patient && errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case err != nil:
		return false, err
	case f.Length() == 0 && !b.trails:
		return false, errLength
	}
	b.found = true
	return false, nil
}

// tinyData is the size below which DATA is no whole message of anything, such as
// gRPC or WebSocket, in bytes: too many of them cost more than they carry.
const tinyData = 5

// next reads frames up to DATA that has some, or trailers.
func (b *body) next() error {
	in := &b.in
	for {
		kind, length, err := in.frame()
		switch {
		case err != nil:
			return err
		case kind == frameData && length > 0:
			b.left = length
			if length < tinyData {
				return b.stream.conn.budget.charge(tinyFlood)
			}
			return nil
		case kind == frameHeaders:
			b.trails, b.trailing = true, length
			return nil
		case misplaced(kind):
			return broken(frameUnexpected, "a frame that no request has (RFC 9114, section 7)")
		}
		if err := in.skip(length, &b.stream.conn.budget); err != nil {
			return err
		}
	}
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
	if b.ended {
		return 0, io.EOF
	}
	if err := b.wait(); err != nil {
		return 0, err
	}
	for b.left == 0 {
		if err := b.advance(); err != nil {
			return 0, b.fault(err)
		}
		if b.ended {
			return 0, io.EOF
		}
	}
	n, err := b.data(p)
	if err != nil {
		return n, b.fault(err)
	}
	return n, nil
}

// wait sets how long the client may pause. It fails if the body was abandoned.
func (b *body) wait() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.closed {
		return &exchange.Error{Reason: exchange.ClientClosed, Err: errGivenUp}
	}
	idle := int64(b.stream.port.Limits.BodyIdle)
	if idle <= 0 {
		return nil
	}
	// The deadline is moved when a quarter of it has passed, not for every read.
	if now := exchange.Now(); b.until-now < idle-idle/4 {
		b.until = now + idle
		b.stream.quic.SetReadDeadline(time.Now().Add(time.Duration(idle)))
	}
	return nil
}

// advance reads up to the next data, or to the end.
func (b *body) advance() error {
	if b.found {
		b.found = false
	} else if err := b.next(); err == errEnd {
		return b.end()
	} else if err != nil {
		return err
	}
	if b.trails {
		return b.trailers()
	}
	return nil
}

// data reads of the DATA frame under way.
func (b *body) data(p []byte) (n int, err error) {
	in := &b.in
	if uint64(len(p)) > b.left {
		p = p[:b.left]
	}
	switch {
	case in.r < in.w:
		n = copy(p, in.bytes())
		in.r += n
	case in.end:
		return 0, errTruncated
	default:
		n, err = in.from.Read(p)
		if err == io.EOF {
			in.end, err = true, nil
			if n == 0 {
				return 0, errTruncated
			}
		}
	}
	b.left -= uint64(n)
	b.received += int64(n)
	if b.expect >= 0 && b.received > b.expect {
		return 0, errLength
	}
	return n, err
}

// errLength is a body that breaks RFC 9114, section 4.1.2.
var errLength = errors.New("the body is not as long as Content-Length says (RFC 9114, section 4.1.2)")

// errTrailers is trailers that break a rule.
type errTrailers string

func (e errTrailers) Error() string { return string(e) }

// end notes the end of the body.
func (b *body) end() error {
	if b.expect >= 0 && b.received != b.expect {
		return errLength
	}
	b.ended = true
	return nil
}

// trailers reads the trailers, behind which the stream must end.
func (b *body) trailers() error {
	in, s := &b.in, b.stream
	if b.trailing > uint64(2*s.port.HeadSize) {
		return errTrailers("the trailers are larger than the limit")
	}
	if err := in.await(int(b.trailing)); err != nil {
		return err
	}
	p := in.bytes()[:b.trailing]
	in.r += int(b.trailing)
	in.hold()
	var f section.Section
	f.BeginTrailers(&s.ex.Request.Trailer, s.port)
	if err := qpack.Decode(p, &s.text, &f); err != nil {
		return broken(decompressionFailed, err.Error())
	}
	if fault := f.SettleTrailers(); fault != "" {
		s.ex.Request.Trailer.Reset()
		return errTrailers(fault)
	}
	for {
		kind, length, err := in.frame()
		switch {
		case err == errEnd:
			return b.end()
		case err != nil:
			return err
		case kind == frameData || kind == frameHeaders || misplaced(kind):
			return broken(frameUnexpected, "a frame behind the trailers (RFC 9114, section 4.1)")
		}
		if err := in.skip(length, &s.conn.budget); err != nil {
			return err
		}
	}
}

// fault assigns a reason to an error of the body. A violation of the
// connection's rules ends the connection; one that makes the request
// malformed resets the stream.
func (b *body) fault(err error) error {
	s := b.stream
	var rule *connError
	var trailers errTrailers
	switch {
	case errors.As(err, &rule):
		s.conn.fail(err)
		return &exchange.Error{Reason: exchange.BadRequest, Err: err}
	case err == errLength, errors.As(err, &trailers):
		b.broken = true
		s.cancel(messageError)
		return &exchange.Error{Reason: exchange.BadRequest, Err: err}
	}
	b.mu.Lock()
	closed := b.mu.closed
	b.mu.Unlock()
	if closed {
		err = errGivenUp
	}
	return readError(err)
}

// continueLook is how long to wait for the first byte of a body whose client may send it
// without 100 Continue: with quic-go that cannot be detected without waiting.
const continueLook = time.Millisecond

// Ready reports whether Read would not wait.
func (b *body) Ready() bool {
	if s := b.stream; s.ex.Request.Continue && !b.begun && !b.ended && !b.in.end && b.in.r == b.in.w {
		b.mu.Lock()
		closed := b.mu.closed
		if !closed {
			s.quic.SetReadDeadline(time.Now().Add(continueLook))
		}
		b.mu.Unlock()
		if closed {
			return true
		}
		b.until = 0
		var one [1]byte
		_, err := s.quic.Peek(one[:])
		b.mu.Lock()
		if !b.mu.closed {
			s.quic.SetReadDeadline(time.Time{})
		}
		b.mu.Unlock()
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	return b.ended || b.in.r < b.in.w && (b.left > 0 || b.found) || b.in.end
}

// Whole returns the body if it has arrived in one piece and its length was known
// before. It may be called again until the body is read.
func (b *body) Whole() ([]byte, bool) {
	in := &b.in
	if b.begun || b.expect < 0 || !in.end {
		return nil, false
	}
	if !b.found {
		kind, n := varint(in.bytes())
		length, m := varint(in.bytes()[min(n, in.w-in.r):])
		if n == 0 || m == 0 || kind != frameData {
			return nil, false
		}
		b.left, b.found = length, true
		in.r += n + m
	}
	if b.trails || b.left != uint64(b.expect) || in.w-in.r != int(b.left) {
		return nil, false
	}
	return in.bytes(), true
}

// Close closes the body. A Read that waits returns.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mu.closed {
		b.mu.closed = true
		b.stream.quic.SetReadDeadline(time.Unix(1, 0))
	}
	return nil
}

var errGivenUp = errors.New("the body is no longer needed")
