package http1

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"headgate/internal/proto/header"
)

// Eight bytes are processed as one word. For each byte c of a word x the high
// bit of (x-lows*n) &^ x is set where c < n. A borrow may set it in bytes above
// such a one too, so only the lowest set bit is reliable; that is the one
// needed.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// Classes of bytes.
const (
	tchar   = 1 << iota // of a token (RFC 9110, section 5.6.2)
	odd                 // a tchar that is neither letter, digit nor hyphen
	under               // the underscore
	hostc               // of a host name: letter, digit, "-", ".", "_" and "~"
	control             // not allowed in a field value or reason phrase
	digit
	delim // of a host name as well, and rare: sub-delims but for the comma (RFC 3986, section 3.2.2)
)

var class = classes()

func classes() (t [256]uint8) {
	for c := range 256 {
		switch b := byte(c); {
		case '0' <= b && b <= '9':
			t[c] = tchar | hostc | digit
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b == '-':
			t[c] = tchar | hostc
		case b == '_':
			t[c] = tchar | odd | under | hostc
		case b == '~', b == '.':
			t[c] = tchar | odd | hostc
		case header.TokenByte(b):
			t[c] = tchar | odd
		case b < ' ' && b != '\t', b == 0x7f:
			t[c] = control
		}
	}
	for _, c := range []byte("!$&'()*+;=") {
		t[c] |= delim
	}
	return t
}

// valueEnd returns the index of the first byte from i on that is not allowed in
// a field value or reason phrase (RFC 9110, section 5.5), or len(b).
func valueEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		m := ((x - lows*0x20) | ((x ^ lows*0x7f) - lows)) &^ x & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && class[b[i]]&control == 0 {
		i++
	}
	return i
}

// nameEnd returns the index of the first colon, space or control character
// from i on, or len(b).
func nameEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		if m := ((x - lows*0x21) | ((x ^ lows*':') - lows)) &^ x & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] > ' ' && b[i] != ':' {
		i++
	}
	return i
}

// targetEnd returns the index of the first byte from i on that is not allowed
// in a request target, or len(b): white space, control characters, "#" and
// non-ASCII bytes. Other bytes that are not allowed in a URI are left to the
// path normalizer.
func targetEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		m := ((x-lows*0x21)|((x^lows*0x7f)-lows)|((x^lows*'#')-lows))&^x | x
		if m &= highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] > ' ' && b[i] < 0x7f && b[i] != '#' {
		i++
	}
	return i
}

// view returns b[i:j] as a string that shares its memory. i is less than len(b).
func view(b []byte, i, j int) string { return unsafe.String(&b[i], j-i) }

// isToken reports whether s is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool { return header.ValidName(s) }

// ValidName reports whether s can be a field name. Code that makes a field
// from settings checks this first; nothing is checked when a head is written.
func ValidName(s string) bool { return header.ValidName(s) }

// ValidValue reports whether s can be a field value: no control characters but
// the tab, and no white space at either end (RFC 9110, section 5.5).
func ValidValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if class[s[i]]&control != 0 {
			return false
		}
	}
	return s == header.TrimOWS(s)
}

// element cuts the first element off a comma-separated list; the rest is empty
// when there is no other. last reports whether no comma followed. Elements
// with quoted strings are not expected.
func element(list string) (first, rest string, last bool) {
	for i := 0; i < len(list); i++ {
		if list[i] == ',' {
			return header.TrimOWS(list[:i]), list[i+1:], false
		}
	}
	return header.TrimOWS(list), "", true
}
