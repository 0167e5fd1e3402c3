package docker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// values reads a sequence or list of JSON objects, without holding more than one.
// It only finds where they start and end.
type values struct {
	r *bufio.Reader
	// max is the size of the largest object that is kept, in bytes.
	max int
	buf []byte
	// inList is whether a list was opened, closed whether it was closed again.
	inList, closed bool
}

// beginning is how much is kept of an object that is larger than the maximum.
const beginning = 4 << 10

// errNoJSON is of an answer that is no JSON.
var errNoJSON = errors.New("the answer is not JSON")

// next returns the next object, valid until the next call. For one that is too large it returns
// the start, and false for whole. At the end it returns io.EOF; a response that ends within a
// list or an object returns io.ErrUnexpectedEOF.
func (v *values) next() (object []byte, whole bool, err error) {
	if err := v.openObject(); err != nil {
		return nil, false, err
	}
	v.buf = append(v.buf[:0], '{')
	whole = true
	for at := (inside{depth: 1}); at.depth > 0; {
		if _, err := v.r.Peek(1); err == io.EOF {
			return nil, false, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, false, err
		}
		p, _ := v.r.Peek(v.r.Buffered())
		p = p[:at.pass(p)]
		kept := min(len(p), v.max-len(v.buf))
		v.buf = append(v.buf, p[:kept]...)
		whole = whole && kept == len(p)
		v.r.Discard(len(p))
	}
	if !whole {
		return v.buf[:min(len(v.buf), beginning)], false, nil
	}
	return v.buf, true, nil
}

// inside is the state of the reader within an object.
type inside struct {
	depth           int // of objects and lists that are open
	inText, escaped bool
}

// pass goes on over p up to the end of the object, and returns how many bytes of p are its.
func (at *inside) pass(p []byte) int {
	for i, c := range p {
		switch {
		case at.escaped:
			at.escaped = false
		case at.inText:
			at.escaped = c == '\\'
			at.inText = c != '"'
		case c == '"':
			at.inText = true
		case c == '{' || c == '[':
			at.depth++
		case c == '}' || c == ']':
			if at.depth--; at.depth == 0 {
				return i + 1
			}
		}
	}
	return len(p)
}

// openObject reads up to the beginning of an object.
func (v *values) openObject() error {
	for blanks := 0; ; blanks++ {
		c, err := v.r.ReadByte()
		switch {
		case err == io.EOF && v.inList && !v.closed:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case blanks > v.max:
			return fmt.Errorf("%w: nothing but spaces", errNoJSON)
		case c == '{' && !v.closed:
			return nil
		case c == '[' && !v.inList:
			v.inList = true
		case c == ']' && v.inList && !v.closed:
			v.closed = true
		case c == ',' && v.inList && !v.closed, c == ' ', c == '\n', c == '\r', c == '\t':
		default:
			return fmt.Errorf("%w: it has %s where an object is expected", errNoJSON, quoted(string(c)+v.following()))
		}
	}
}

// following returns a little of what comes next, for a message.
func (v *values) following() string {
	const little = 40
	p, _ := v.r.Peek(min(little, v.r.Buffered()))
	return string(p)
}
