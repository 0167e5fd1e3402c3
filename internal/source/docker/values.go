package docker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// values reads JSON objects that stand one after the other, or in a list, without
// holding more than one. It looks at nothing but where they begin and end.
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

// next returns the next object, valid until the next call. Of one that is too large it
// returns the beginning, and false for whole. At the end it returns io.EOF; an answer that ends
// within a list or an object gives io.ErrUnexpectedEOF.
func (v *values) next() (object []byte, whole bool, err error) {
	if err := v.begin(); err != nil {
		return nil, false, err
	}
	v.buf = append(v.buf[:0], '{')
	whole = true
	depth, inText, escaped := 1, false, false
	for depth > 0 {
		c, err := v.r.ReadByte()
		if err == io.EOF {
			return nil, false, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, false, err
		}
		if len(v.buf) < v.max {
			v.buf = append(v.buf, c)
		} else {
			whole = false
		}
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped = c == '\\'
			inText = c != '"'
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	if !whole {
		return v.buf[:min(len(v.buf), beginning)], false, nil
	}
	return v.buf, true, nil
}

// begin reads up to the beginning of an object.
func (v *values) begin() error {
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
			return fmt.Errorf("%w: it has %s where an object should begin", errNoJSON, quoted(string(c)+v.following()))
		}
	}
}

// following returns a little of what comes next, for a message.
func (v *values) following() string {
	const little = 40
	p, _ := v.r.Peek(min(little, v.r.Buffered()))
	return string(p)
}
