package fcgi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of a response.
const (
	// maxEmpty is how many records without content a response may have: one ends each of the
	// two streams.
	maxEmpty = 64
	// maxErrors is how much a script may write to its standard error, in bytes, and
	// keptErrors how much of it is kept for the log.
	maxErrors  = 1 << 20
	keptErrors = 2 << 10
)

// Reader separates the records of one response. The zero value is at its beginning. It does
// not wait for anything: bytes are given to it as they arrive.
type Reader struct {
	kind      byte
	left      int // of the content of the record, in bytes
	pad       int // of its padding
	empty     int
	errSize   int
	errors    []byte
	result    [8]byte
	resultLen int
	outEnded  bool
	ended     bool
}

// Ended reports whether the server has ended the response.
func (r *Reader) Ended() bool { return r.ended }

// Clean reports whether the response has ended and nothing of it is left on the connection.
func (r *Reader) Clean() bool { return r.ended && r.pad == 0 }

// Errors returns the beginning of what the script wrote to its standard error.
func (r *Reader) Errors() []byte { return r.errors }

// Output returns how many of the next bytes are the script's output. They must be passed to
// Consume, at once or in parts, before Next is called again.
func (r *Reader) Output() int {
	if r.kind != typeStdout {
		return 0
	}
	return r.left
}

// Consume says that n bytes of the output were used, at most Output.
func (r *Reader) Consume(n int) { r.left -= n }

// Next uses bytes up to the next output, and returns how many. It needs more bytes if there
// is no output and the response has not ended; then it can have left up to 7 of b. The error
// says which rule the server breaks.
func (r *Reader) Next(b []byte) (n int, err error) {
	for !r.ended {
		switch {
		case r.left > 0 && r.kind == typeStdout:
			return n, nil
		case r.left > 0:
			m := min(r.left, len(b)-n)
			if m == 0 {
				return n, nil
			}
			if err := r.content(b[n : n+m]); err != nil {
				return n, err
			}
			r.left, n = r.left-m, n+m
		case r.kind == typeEnd && r.resultLen == len(r.result):
			r.ended = true
			if err := r.judgeEnd(); err != nil {
				return n, err
			}
		case r.pad > 0:
			m := r.padding(len(b) - n)
			if n += m; m == 0 {
				return n, nil
			}
		default:
			if len(b)-n < headerSize {
				return n, nil
			}
			if err := r.header(b[n : n+headerSize]); err != nil {
				return n, err
			}
			n += headerSize
		}
	}
	return n + r.padding(len(b)-n), nil
}

// padding uses up to n bytes of padding.
func (r *Reader) padding(n int) int {
	n = min(n, r.pad)
	r.pad -= n
	return n
}

// header begins a record (FastCGI, section 3.3).
func (r *Reader) header(b []byte) error {
	if b[0] != version {
		return fmt.Errorf("a record has version %d: the server does not speak FastCGI", b[0])
	}
	if id := binary.BigEndian.Uint16(b[2:]); id != requestID {
		return fmt.Errorf("a record is for request %d, which does not exist", id)
	}
	r.kind, r.left, r.pad = b[1], int(binary.BigEndian.Uint16(b[4:])), int(b[6])
	if r.left == 0 {
		if r.empty++; r.empty > maxEmpty {
			return errors.New("too many records without content")
		}
	}
	switch r.kind {
	case typeStdout:
		if r.outEnded {
			return errors.New("output after its end")
		}
		r.outEnded = r.left == 0
	case typeStderr:
	case typeEnd:
		if r.left != len(r.result) {
			return fmt.Errorf("the record of the end has %d bytes in place of %d", r.left, len(r.result))
		}
	default:
		return fmt.Errorf("unexpected record of type %d", r.kind)
	}
	return nil
}

// content uses content of a record that is not output.
func (r *Reader) content(b []byte) error {
	if r.kind == typeEnd {
		r.resultLen += copy(r.result[r.resultLen:], b)
		return nil
	}
	if r.errSize += len(b); r.errSize > maxErrors {
		return fmt.Errorf("the script wrote more than %d bytes to standard error", maxErrors)
	}
	r.errors = append(r.errors, b[:min(len(b), keptErrors-len(r.errors))]...)
	return nil
}

// ErrOverloaded says that the server rejected the request because it has too many.
var ErrOverloaded = errors.New("the FastCGI server is overloaded")

// judgeEnd evaluates the protocol status of the end (FastCGI, section 5.5). The exit status
// of a script says nothing about its response.
func (r *Reader) judgeEnd() error {
	switch status := r.result[4]; status {
	case 0:
		return nil
	case 2:
		return ErrOverloaded
	default:
		return fmt.Errorf("the FastCGI server rejected the request with protocol status %d", status)
	}
}
