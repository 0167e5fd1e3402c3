package files

import (
	"errors"
	"io"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// part is a piece of a body: text that goes before a piece of the file.
type part struct {
	head      string
	off, left int64 // of the file, in bytes
}

// body is the body of a response: one or more pieces of a file. One goroutine reads it.
type body struct {
	file   *found
	parts  []part
	closed bool
	moved  bool // something was sent before: the file may have changed meanwhile
}

// sendfileLeast is how much of a piece is left for sendfile to pay, in bytes; lastPiece is
// read after it, so that a change of the file is noticed before the end.
const (
	sendfileLeast = 64 << 10
	lastPiece     = 16 << 10
)

var errChanged = errors.New("files: the file was changed while it was sent")

// length returns how many bytes are left.
func (b *body) length() (n int64) {
	for i := range b.parts {
		n += int64(len(b.parts[i].head)) + b.parts[i].left
	}
	return n
}

// Read reads the next piece. The error at the end of the last is io.EOF.
func (b *body) Read(p []byte) (n int, err error) {
	for n < len(p) && len(b.parts) > 0 {
		at := &b.parts[0]
		if at.head != "" {
			m := copy(p[n:], at.head)
			at.head, n = at.head[m:], n+m
			continue
		}
		if at.left > 0 {
			m, err := b.file.file.ReadAt(p[n:n+int(min(int64(len(p)-n), at.left))], at.off)
			at.off, at.left, n = at.off+int64(m), at.left-int64(m), n+m
			if m == 0 {
				return n, b.failure(err)
			}
		}
		if at.left == 0 {
			b.parts = b.parts[1:]
		}
	}
	if len(b.parts) > 0 {
		b.moved = true
		return n, nil
	}
	if b.moved && b.changed() {
		return 0, b.failure(nil)
	}
	return n, io.EOF
}

// failure returns the error of a read that brought nothing.
func (b *body) failure(err error) error {
	if err == nil || err == io.EOF {
		err = errChanged
	}
	return &exchange.Error{Reason: exchange.FileUnreadable, Err: err}
}

// changed reports whether the file was written to since it was opened, so that what was
// sent may be a mixture. A file that has grown, like a log, still begins with what it was.
func (b *body) changed() bool {
	info, err := b.file.file.Stat()
	return err != nil || info.Size() < b.file.size || info.Size() == b.file.size && !info.ModTime().Equal(b.file.modified)
}

// Ready reports true: a file never waits for the network.
func (b *body) Ready() bool { return true }

// Close closes the file.
func (b *body) Close() error {
	if !b.closed {
		b.closed = true
		b.file.Close()
	}
	return nil
}

// Splice moves a long piece to dst inside the kernel, except for its end, which Read
// returns. It never reports that all was moved.
func (b *body) Splice(dst *netconn.Conn) (n int64, all bool, err error) {
	if len(b.parts) != 1 || b.parts[0].head != "" || b.parts[0].left < sendfileLeast {
		return 0, false, nil
	}
	at := &b.parts[0]
	n, ok, err := netconn.SendFile(dst, b.file.file, at.off, at.left-lastPiece)
	if n > 0 {
		b.moved = true
	}
	at.off, at.left = at.off+n, at.left-n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.failure(nil)
	}
	return n, ok && err != nil, err
}
