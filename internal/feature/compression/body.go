package compression

import (
	"errors"
	"io"
	"strings"
	"sync"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// readSize is the size of the pieces in which a body is compressed, in bytes, and
// bounds what is held back of one.
const readSize = 32 << 10

// outKeep is how much memory for compressed bytes is kept for the next body.
const outKeep = 256 << 10

// flushLeast is how much of a body with a known length has to be waiting before a
// pause of the server is reason to flush, in bytes: such a body is at hand there,
// and the network made the pause.
const flushLeast = 8 << 10

// room is the memory in which a body is compressed.
type room struct {
	in  [readSize]byte
	out []byte
}

// Write takes what the encoder makes.
func (r *room) Write(p []byte) (int, error) {
	r.out = append(r.out, p...)
	return len(p), nil
}

var rooms = sync.Pool{New: func() any { return &room{} }}

// leave gives memory back.
func (r *room) leave() {
	if cap(r.out) > outKeep {
		r.out = nil
	}
	r.out = r.out[:0]
	rooms.Put(r)
}

// body is a body on its way through an encoder. Whatever is read when the server
// pauses is flushed, so that what it flushed goes through at once.
type body struct {
	plain    exchange.Body
	response *exchange.Response // whose body it is
	front    exchange.Front     // of whom it is for
	encoders *encoders
	kind     kind
	stream   bool // the length is not known: pauses are the server's

	room    *room
	encoder encoder
	held    int // bytes in room.in that were read before
	sent    int // bytes of room.out that were read by the front
	waiting int // bytes that were written and not flushed
	taken   int // bytes that were compressed since the last look
	made    int // bytes that were handed out since the last look
	handOn  bool
	err     error
}

// lookEvery is how much of a body is compressed before it is checked whether the client is
// still connected, and minOutput the minimum output before it is sent anyway, in bytes.
// Otherwise an endless body with little content would be compressed for long without a byte
// for the client, so that its disconnection would not be noticed.
const (
	lookEvery = 1 << 20
	minOutput = 4 << 10
)

var errLeft = &exchange.Error{Reason: exchange.ClientClosed, Err: errors.New("the client left while its response was compressed")}

// Read returns compressed bytes.
func (b *body) Read(p []byte) (int, error) {
	for b.room != nil && b.sent == len(b.room.out) && b.err == nil {
		b.pump()
	}
	if b.room == nil || b.sent == len(b.room.out) {
		b.release()
		return 0, b.err
	}
	n := copy(p, b.room.out[b.sent:])
	b.sent += n
	b.made += n
	return n, nil
}

// Ready reports whether Read would return without waiting. It compresses what is
// at hand to find out. When much came to little it says false once, so that what
// there is goes out.
func (b *body) Ready() bool {
	for b.room != nil && b.sent == len(b.room.out) && b.err == nil {
		if b.handOn {
			b.handOn = false
			return false
		}
		if b.held == 0 && !b.plain.Ready() {
			return false
		}
		b.pump()
	}
	return true
}

// pump reads one piece and compresses it.
func (b *body) pump() {
	r := b.room
	r.out, b.sent = r.out[:0], 0
	n, err := b.held, error(nil)
	b.held = 0
	if n == 0 {
		n, err = b.plain.Read(r.in[:])
	}
	if n > 0 {
		_, werr := b.encoder.Write(r.in[:n])
		b.waiting += n
		b.taken += n
		mustWork(werr)
	}
	switch {
	case err == io.EOF:
		mustWork(b.encoder.Close())
		adapt(&b.response.Trailer)
	case err != nil:
		mustWork(b.encoder.Flush()) // what came is sent before the end is told
	case b.waiting > 0 && (b.stream || b.waiting >= flushLeast) && !b.plain.Ready():
		mustWork(b.encoder.Flush())
		b.waiting = 0
	case b.taken >= lookEvery:
		err = b.checkIdle()
	}
	b.err = err
}

// checkIdle ends a body whose client has disconnected, and flushes one with little output.
func (b *body) checkIdle() error {
	if b.front.Gone() {
		return errLeft
	}
	if b.made+len(b.room.out) < minOutput {
		mustWork(b.encoder.Flush())
		b.waiting, b.handOn = 0, true
	}
	b.taken, b.made = 0, 0
	return nil
}

// adapt makes trailers those of the compressed body: its hashes are others, and a
// strong tag would lie (RFC 9110, section 8.8.1; RFC 9530).
func adapt(list *header.List) {
	if list.Len() == 0 {
		return
	}
	list.DeleteFunc(func(f *header.Field) bool { return f.ID == header.Other && isHash(f) })
	if tag := list.Get(header.ETag); strings.HasPrefix(tag, `"`) {
		list.Set(header.ETag, "W/"+tag)
	}
}

// mustWork holds that encoders write to memory without errors.
func mustWork(err error) {
	if err != nil {
		panic("compression: " + err.Error())
	}
}

// Close gives the encoder back and closes the body.
func (b *body) Close() error {
	b.release()
	if b.err == nil {
		b.err = io.ErrClosedPipe
	}
	return b.plain.Close()
}

func (b *body) release() {
	if b.room == nil {
		return
	}
	b.encoders.release(b.kind, b.encoder)
	b.room.leave()
	b.room, b.encoder = nil, nil
}

// text is a body that is at hand.
type text struct{ rest []byte }

func (t *text) Read(p []byte) (int, error) {
	n := copy(p, t.rest)
	if t.rest = t.rest[n:]; len(t.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (t *text) Ready() bool { return true }

func (t *text) Close() error { return nil }

// short is a body that ended while it was held back.
type short struct {
	room  *room
	rest  []byte // in the room
	end   error  // io.EOF, or what broke it off
	plain exchange.Body
}

func (s *short) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, s.end
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *short) Ready() bool { return true }

// Close gives the memory back and closes the body, whose head is in use till then.
func (s *short) Close() error {
	if s.room != nil {
		s.room.leave()
		s.room, s.rest, s.end = nil, nil, io.ErrClosedPipe
	}
	return s.plain.Close()
}

// resumed is a body of which some was held back, and which goes on as it is.
type resumed struct{ short }

func (s *resumed) Read(p []byte) (int, error) {
	if len(s.rest) > 0 {
		return s.short.Read(p)
	}
	if s.room != nil {
		s.room.leave() // the rest may take long
		s.room = nil
	}
	return s.plain.Read(p)
}

func (s *resumed) Ready() bool { return len(s.rest) > 0 || s.plain.Ready() }
