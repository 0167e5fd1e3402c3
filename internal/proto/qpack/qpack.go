// Package qpack reads and writes the field sections of HTTP/3 (RFC 9204), without
// the dynamic table: a section does not depend on any other, is made without a
// lock, and costs one copy. A peer that received a table capacity of 0 must do
// the same.
//
// Decode hands over field by field. Names and values are views into the section,
// the static table, or memory that Decode adds to its Text.
package qpack

import (
	"errors"
	"unsafe"

	"golang.org/x/net/http2/hpack"
)

// Fields receives the fields of a section in order.
type Fields interface {
	// Add adds a field. It returns false to stop.
	Add(name, value string) (more bool)
}

// Text is memory for strings that came in Huffman's code. What was decoded into
// it lives until Reset. The zero value is ready.
type Text struct{ buf []byte }

// textLeast is the minimum memory that is allocated at once, and maxText the
// maximum that is kept, in bytes.
const (
	textLeast = 1 << 10
	maxText   = 4 << 10
)

// Reset discards what was decoded. The memory is used again.
func (t *Text) Reset() {
	if cap(t.buf) > maxText {
		t.buf = nil
	}
	t.buf = t.buf[:0]
}

// Write adds bytes, which must fit.
func (t *Text) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	return len(p), nil
}

// The ways in which a section is wrong (RFC 9204, section 2.2). All are the
// connection error QPACK_DECOMPRESSION_FAILED.
var (
	errTruncated = errors.New("the field section ends within a field (RFC 9204, section 4.5)")
	errInteger   = errors.New("an integer is too large (RFC 9204, section 4.1.1)")
	errDynamic   = errors.New("a reference to the dynamic table, which has no size (RFC 9204, section 3.2.3)")
	errIndex     = errors.New("an index beyond the static table (RFC 9204, section 3.1)")
	errHuffman   = errors.New("a string that is no Huffman code (RFC 9204, section 4.1.2)")
)

// Decode hands the fields of the section p to fields. p must stay as it is, and
// text must not be reset, as long as the strings are used.
func Decode(p []byte, text *Text, fields Fields) error {
	count, p, err := integer(p, 8)
	if err != nil {
		return err
	}
	if count != 0 {
		return errDynamic
	}
	if len(p) == 0 {
		return errTruncated
	}
	if p[0]&0x80 != 0 {
		return errDynamic // a base below zero (RFC 9204, section 4.5.1.2)
	}
	if _, p, err = integer(p, 7); err != nil {
		return err
	}
	for len(p) > 0 {
		var name, value string
		if name, value, p, err = field(p, text); err != nil {
			return err
		}
		if !fields.Add(name, value) {
			return nil
		}
	}
	return nil
}

// field reads one field line (RFC 9204, section 4.5.2 to 4.5.6).
func field(p []byte, text *Text) (name, value string, rest []byte, err error) {
	var n uint64
	switch b := p[0]; {
	case b&0xc0 == 0xc0: // indexed, static
		n, rest, err = integer(p, 6)
		if err == nil && n >= uint64(len(table)) {
			err = errIndex
		}
		if err != nil {
			return "", "", nil, err
		}
		return table[n].name, table[n].value, rest, nil
	case b&0xd0 == 0x50: // literal with the name of the static table
		n, rest, err = integer(p, 4)
		if err == nil && n >= uint64(len(table)) {
			err = errIndex
		}
		if err != nil {
			return "", "", nil, err
		}
		name = table[n].name
	case b&0xe0 == 0x20: // literal with its own name
		if name, rest, err = literal(p, 3, text); err != nil {
			return "", "", nil, err
		}
	default:
		return "", "", nil, errDynamic
	}
	value, rest, err = literal(rest, 7, text)
	return name, value, rest, err
}

// literal reads a string whose length has a prefix of n bits, and the bit before
// that says whether it is in Huffman's code.
func literal(p []byte, n uint, text *Text) (string, []byte, error) {
	if len(p) == 0 {
		return "", nil, errTruncated
	}
	huffman := p[0]&(1<<n) != 0
	size, rest, err := integer(p, n)
	switch {
	case err != nil:
		return "", nil, err
	case size > uint64(len(rest)):
		return "", nil, errTruncated
	case !huffman:
		return view(rest[:size]), rest[size:], nil
	}
	s, err := text.decode(rest[:size])
	return s, rest[size:], err
}

// decode decodes a string in Huffman's code. No code is shorter than five bits.
func (t *Text) decode(p []byte) (string, error) {
	limit := len(p)*8/5 + 1
	if cap(t.buf)-len(t.buf) < limit {
		t.buf = make([]byte, 0, max(limit, textLeast)) // what is in the old memory stays there
	}
	begin := len(t.buf)
	if _, err := hpack.HuffmanDecode(t, p); err != nil {
		return "", errHuffman
	}
	return view(t.buf[begin:]), nil
}

// integer reads an integer with a prefix of n bits (RFC 7541, section 5.1).
func integer(p []byte, n uint) (uint64, []byte, error) {
	if len(p) == 0 {
		return 0, nil, errTruncated
	}
	limit := uint64(1)<<n - 1
	v := uint64(p[0]) & limit
	if p = p[1:]; v < limit {
		return v, p, nil
	}
	for shift := uint(0); ; shift += 7 {
		switch {
		case len(p) == 0:
			return 0, nil, errTruncated
		case shift > 28:
			return 0, nil, errInteger // nothing that is so long has a use here
		}
		b := p[0]
		p = p[1:]
		v += uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v, p, nil
		}
	}
}

// view returns the bytes as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
