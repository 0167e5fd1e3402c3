package tracing

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The names of W3C Trace Context.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// The bits of the trace flags that are known: the second one says that the trace id is
// random (Trace Context, level 2).
const (
	flagSampled = 1
	knownFlags  = 3
)

// traceContext is what traceparent says.
type traceContext struct {
	trace [16]byte
	span  [8]byte
	flags byte
}

// parentSize is the length of traceparent in version 00, and the others are where its
// parts begin.
const (
	traceAt    = 2 + 1
	spanAt     = traceAt + traceDigits + 1
	flagsAt    = spanAt + 16 + 1
	parentSize = flagsAt + 2

	traceDigits = 32
)

// parse reads the value of traceparent. Later versions are read as far as this one
// goes (Trace Context, section 3.2.4).
func parse(value string) (c traceContext, ok bool) {
	if len(value) < parentSize || value[2] != '-' || value[35] != '-' || value[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !decode(version[:], value[:2]) || !decode(c.trace[:], value[3:35]) || !decode(c.span[:], value[36:52]) || !decode(flags[:], value[53:55]) {
		return c, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(value) != parentSize, len(value) > parentSize && value[parentSize] != '-':
		return c, false
	}
	c.flags = flags[0] & knownFlags
	return c, c.trace != [16]byte{} && c.span != [8]byte{}
}

// decode reads hexadecimal digits, in lower case only.
func decode(out []byte, text string) bool {
	for i := range out {
		hi, lo := digit(text[2*i]), digit(text[2*i+1])
		if hi > 15 || lo > 15 {
			return false
		}
		out[i] = hi<<4 | lo
	}
	return true
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// append appends the value of traceparent.
func (c *traceContext) append(b []byte) []byte {
	at := len(b)
	b = append(b, "00-00000000000000000000000000000000-0000000000000000-00"...)
	out := b[at : at+parentSize]
	encode(out[traceAt:], c.trace[:])
	encode(out[spanAt:], c.span[:])
	encode(out[flagsAt:], []byte{c.flags})
	return b
}

// pairs are the two digits of each byte.
var pairs = func() (t [256][2]byte) {
	const digits = "0123456789abcdef"
	for i := range t {
		t[i] = [2]byte{digits[i>>4], digits[i&15]}
	}
	return t
}()

// encode writes bytes as hexadecimal digits.
func encode(out, in []byte) {
	for i, c := range in {
		p := &pairs[c]
		out[2*i], out[2*i+1] = p[0], p[1]
	}
}

// newID fills an id of a span or half of one of a trace with random bits, never zero.
func newID(id []byte) { binary.BigEndian.PutUint64(id, rand.Uint64()|1) }

// newTrace starts a trace and its first span, whose id is made of the trace's: it has to
// differ from those of no other trace. reject is the part of 2^56 below which it is not
// sampled.
func newTrace(reject uint64) (c traceContext) {
	high, low := rand.Uint64(), rand.Uint64()|1
	binary.BigEndian.PutUint64(c.trace[:8], high)
	binary.BigEndian.PutUint64(c.trace[8:], low)
	binary.BigEndian.PutUint64(c.span[:], (high^bits.RotateLeft64(low, 32))|1)
	c.flags = knownFlags &^ flagSampled
	if low&(1<<56-1) >= reject {
		c.flags |= flagSampled
	}
	return c
}

// hasContext reports whether there is a field of Trace Context, in few looks.
func hasContext(list *header.List) bool {
	all := list.All()
	for i := range all {
		if f := &all[i]; f.ID == header.Other && (len(f.Name) == len(traceparent) || len(f.Name) == len(tracestate)) && isContext(f) {
			return true
		}
	}
	return false
}

// isContext reports whether a field is one of Trace Context.
func isContext(f *header.Field) bool {
	return f.ID == header.Other && (len(f.Name) == len(traceparent) && f.Is(traceparent) || f.Is(tracestate))
}

// received returns the context that a trusted peer sends. Two of them are none.
func received(ex *exchange.Exchange) (c traceContext, ok bool) {
	found := 0
	for i := range ex.Request.Header.All() {
		if f := &ex.Request.Header.All()[i]; f.ID == header.Other && f.Is(traceparent) {
			c, ok = parse(f.Value)
			found++
		}
	}
	return c, ok && found == 1
}

// isParent reports whether a field is traceparent.
func isParent(f *header.Field) bool { return f.ID == header.Other && f.Is(traceparent) }
