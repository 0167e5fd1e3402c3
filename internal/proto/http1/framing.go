package http1

import (
	"math"
	"strings"

	"headgate/internal/proto/header"
)

// Framing is how the end of a message body is determined (RFC 9112, section
// 6.3).
type Framing uint8

// The framings.
const (
	// NoBody: no body follows the head.
	NoBody Framing = iota
	// Length: as many bytes follow as Content-Length says.
	Length
	// Chunked: the body is in the chunked coding, perhaps with trailers.
	Chunked
	// UntilClose: the body ends with the connection. Responses only.
	UntilClose
)

// String returns a word for logs.
func (f Framing) String() string {
	return [...]string{"none", "length", "chunked", "until_close"}[f&3]
}

// frame applies the rules that requests and responses share: which of
// Content-Length and Transfer-Encoding is there, alone and well-formed. The
// length is 0 with neither, and -1 with the chunked coding.
func (f *facts) frame(minor uint8, list *header.List) (Framing, int64, Error) {
	switch {
	case f.count[slotCoding] > 0:
		return f.frameCoding(minor, list)
	case f.count[slotLength] == 0:
		return NoBody, 0, none
	case f.count[slotLength] > 1:
		return NoBody, 0, LengthRepeated
	}
	value := f.value[slotLength]
	n, e := parseLength(value)
	if e != none {
		return NoBody, 0, e
	}
	if value[0] == '0' && len(value) > 1 {
		trimLength(list)
	}
	if n == 0 {
		return NoBody, 0, none
	}
	return Length, n, none
}

// frameCoding judges a message with Transfer-Encoding. Only the chunked coding,
// alone, passes.
func (f *facts) frameCoding(minor uint8, list *header.List) (Framing, int64, Error) {
	switch {
	case f.count[slotLength] > 0:
		return NoBody, 0, LengthWithCoding
	case minor == 0:
		return NoBody, 0, CodingInOldVersion
	case f.count[slotCoding] == 1 && header.EqualFold(f.value[slotCoding], "chunked"):
		return Chunked, -1, none
	}
	return NoBody, 0, judgeCodings(list)
}

// judgeCodings names what is wrong with Transfer-Encoding fields that are not
// one "chunked".
func judgeCodings(list *header.List) Error {
	chunked, unknown, final := 0, false, false
	for i := range list.All() {
		field := &list.All()[i]
		if field.ID != header.TransferEncoding {
			continue
		}
		for rest, last := field.Value, false; !last; {
			var coding string
			coding, rest, last = element(rest)
			if !isToken(coding) {
				return BadCoding
			}
			if final = header.EqualFold(coding, "chunked"); final {
				chunked++
			} else if !knownCoding(coding) {
				unknown = true
			}
		}
	}
	switch {
	case chunked > 1:
		return ChunkedTwice
	case unknown || final:
		return CodingUnknown
	}
	return CodingNotChunked
}

// knownCoding reports whether a coding is registered, other than chunked. We
// decode none of them.
func knownCoding(coding string) bool {
	switch strings.ToLower(coding) {
	case "gzip", "x-gzip", "deflate", "compress", "x-compress":
		return true
	}
	return false
}

// parseLength reads a Content-Length: digits only, below 2^63. A list, even of
// equal numbers, is refused, though RFC 9110, section 8.6 would let it pass.
func parseLength(s string) (int64, Error) {
	if len(s) == 0 {
		return 0, BadLength
	}
	var n uint64
	var e Error
	for i := 0; i < len(s); i++ {
		d := uint64(s[i] - '0')
		if d > 9 {
			return 0, BadLength
		}
		if n > (math.MaxInt64-d)/10 {
			e = LengthOverflow
			continue
		}
		n = n*10 + d
	}
	if e != none {
		return 0, e
	}
	return int64(n), none
}

// ParseLength reads the value of a Content-Length field as parseLength does. It
// returns -1 for what is none.
func ParseLength(s string) int64 {
	n, e := parseLength(s)
	if e != none {
		return -1
	}
	return n
}

// trimLength removes leading zeros, so that no reader interprets them as
// octal, from the only Content-Length in the list.
func trimLength(list *header.List) {
	all := list.All()
	for i := range all {
		if all[i].ID != header.ContentLength {
			continue
		}
		v := &all[i].Value
		for len(*v) > 1 && (*v)[0] == '0' {
			*v = (*v)[1:]
		}
	}
}
