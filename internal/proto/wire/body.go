// Package wire reads the bodies of HTTP/1.1 messages off a connection: those of
// requests for the front, those of responses for upstream. The syntax is
// internal/proto/http1's, the waiting internal/netconn's.
package wire

import (
	"errors"
	"io"
	"time"

	"headgate/internal/clock"
	"headgate/internal/netconn"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// spliceLeast is how many bytes must be left of a body for splice to pay, in
// bytes: below it, two system calls more cost more than the copy.
const spliceLeast = 64 << 10

// directLeast is how large a caller's memory must be to be read into past the
// buffer, in bytes.
const directLeast = 4 << 10

// Body is the body of one message. Begin prepares it; it is used again for
// the next message of the connection. One goroutine reads it.
type Body struct {
	conn    *netconn.Conn
	buf     *netconn.Buffer
	trailer *header.List

	framing http1.Framing
	left    int64 // of a body with a length, in bytes
	decoder http1.Decoder
	done    bool
	err     error

	sole  bool // nothing may follow
	more  bool // something does
	blind bool // the last read filled its buffer, so nothing behind it was seen
}

// Reset readies b for a body that follows in buf and on conn. Trailers are put
// into trailer at the end; lim bounds them.
func (b *Body) Reset(conn *netconn.Conn, buf *netconn.Buffer, framing http1.Framing, length int64, lim *http1.Limits, trailer *header.List) {
	b.conn, b.buf, b.trailer = conn, buf, trailer
	b.framing, b.left, b.err = framing, length, nil
	b.done = framing == http1.NoBody
	b.sole, b.more, b.blind = false, false, false
	if framing == http1.Chunked {
		b.decoder.Reset(lim)
	}
}

// Done reports whether the whole body was read.
func (b *Body) Done() bool { return b.done }

// Sole means that nothing may follow the body, as nothing may follow a response. Its end
// is then read with space for more, if there is any: that costs nothing.
func (b *Body) Sole() { b.sole = true }

// Followed reports whether something has come behind a body that was read whole. If not,
// sure is whether it would have been seen, had it been there when the end was read.
func (b *Body) Followed() (followed, sure bool) {
	return b.more || b.buf.Len() > 0, !b.blind && !b.buf.Full()
}

// Err returns the error that ended the body early, or nil.
func (b *Body) Err() error { return b.err }

// Resume forgets an error that was no end, such as netconn.ErrKicked, so that
// the body can be read on.
func (b *Body) Resume() { b.err = nil }

// Read reads at least one byte, or returns io.EOF at the end of the body. It
// returns io.ErrUnexpectedEOF when the connection ended before the body, an
// http1.Error when the body breaks a rule, and else the connection's error.
// Errors stay.
func (b *Body) Read(p []byte) (n int, err error) {
	switch {
	case b.done:
		return 0, io.EOF
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	switch b.framing {
	case http1.Length:
		n, err = b.readLength(p)
		b.left -= int64(n)
		b.done = b.left == 0
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	case http1.Chunked:
		n, err = b.readChunked(p)
	default:
		n, err = b.readSome(p)
		b.done = err == io.EOF
	}
	if err != nil && !b.done {
		b.err = err
	}
	if b.done && err == nil {
		err = io.EOF
	}
	return n, err
}

// readLength reads bytes of a body with a length.
func (b *Body) readLength(p []byte) (int, error) {
	if !b.sole || b.buf.Len() > 0 || b.left < directLeast || int64(len(p)) <= b.left {
		return b.readSome(p[:min(int64(len(p)), b.left)])
	}
	n, err := b.conn.Read(p[:b.left+1])
	if b.blind = false; int64(n) > b.left {
		b.more, n = true, n-1
	}
	return n, err
}

// readSome reads bytes of the connection: those of the buffer first.
func (b *Body) readSome(p []byte) (int, error) {
	if b.buf.Len() == 0 {
		if b.blind = len(p) >= directLeast; b.blind {
			return b.conn.Read(p)
		}
		if err := b.conn.Fill(b.buf); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.buf.Bytes())
	b.buf.Use(n)
	return n, nil
}

// readChunked removes the coding until there is data or the end.
func (b *Body) readChunked(p []byte) (int, error) {
	d := &b.decoder
	for {
		if left := d.Left(); left > 0 && b.buf.Len() == 0 && len(p) >= directLeast {
			n, err := b.conn.Read(p[:min(int64(len(p)), left)])
			d.Skip(int64(n))
			return n, cutOff(err)
		}
		if b.buf.Len() == 0 {
			if err := b.conn.Fill(b.buf); err != nil {
				return 0, cutOff(err)
			}
		}
		n, used, err := d.Decode(p, b.buf.Bytes())
		b.buf.Use(used)
		if err != nil {
			return n, err
		}
		if d.Done() {
			b.done = true
			d.Trailers.CopyTo(b.trailer)
			return n, nil
		}
		if n > 0 {
			return n, nil
		}
	}
}

// cutOff turns the end of a connection into the end of a body that is not
// whole.
func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Ready reports whether Read would return without waiting.
func (b *Body) Ready() bool {
	if b.done || b.err != nil || b.buf.Len() > 0 {
		return true
	}
	got, err := b.conn.TryFill(b.buf)
	switch {
	case err == nil:
		return got
	case err == io.EOF && b.framing == http1.UntilClose:
		b.done = true
	default:
		// A socket reports an error once: after a reset it would read as an
		// orderly end.
		b.err = cutOff(err)
	}
	return true
}

// ReadyWithin is like Ready, but on a connection that cannot find out without waiting
// whether there are bytes, as under TLS, it waits for them for a moment. The next wait
// must set its deadline again.
func (b *Body) ReadyWithin(moment time.Duration) bool {
	if b.Ready() || b.conn.CanPoll() {
		return b.Ready()
	}
	b.conn.SetReadUntil(clock.Now() + int64(moment))
	err := b.conn.Fill(b.buf)
	if err == nil || errors.Is(err, netconn.ErrTimeout) || errors.Is(err, netconn.ErrKicked) {
		return err == nil
	}
	b.err = cutOff(err)
	return true
}

// Whole returns the rest of a body that has arrived whole and has a length.
func (b *Body) Whole() ([]byte, bool) {
	switch {
	case b.done:
		return nil, true
	case b.framing == http1.Length && b.err == nil && int64(b.buf.Len()) >= b.left:
		return b.buf.Bytes()[:b.left], true
	}
	return nil, false
}

// Consume marks the bytes that Whole returned as read.
func (b *Body) Consume() {
	if !b.done {
		b.buf.Use(int(b.left))
		b.left, b.done = 0, true
	}
}

// Discard reads the rest of the body, at most limit bytes, and reports whether
// its end was reached.
func (b *Body) Discard(limit int64) bool {
	var sink [4096]byte
	for !b.done && limit > 0 {
		n, err := b.Read(sink[:])
		limit -= int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
	}
	return b.done
}

// Splice moves the rest of the body to dst inside the kernel, if it is plain
// and long enough for that to pay. ok is false if it did not, and nothing was
// moved. The error is a *netconn.WriteError if it was dst's.
func (b *Body) Splice(dst *netconn.Conn) (n int64, ok bool, err error) {
	plain := b.framing == http1.Length && b.left >= spliceLeast || b.framing == http1.UntilClose
	if b.done || b.err != nil || !plain || b.buf.Len() > 0 {
		return 0, false, nil
	}
	want := b.left
	if b.framing == http1.UntilClose {
		want = -1
	}
	n, ok, err = netconn.Splice(dst, b.conn, want)
	if !ok {
		return 0, false, nil
	}
	if b.framing == http1.Length {
		b.left -= n
		b.blind = true
	}
	b.done = err == nil
	b.err = err
	return n, true, err
}
