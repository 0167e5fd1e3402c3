package exchange

import (
	"unsafe"

	"headgate/internal/proto/uri"
)

// Text is memory for values that are made while an exchange runs: forwarded
// fields, expanded variables, rewritten paths. What it hands out lives as long
// as the exchange. The zero value is ready.
type Text struct {
	buf []byte
}

// textKeep is how much memory Text keeps from one exchange to the next.
const textKeep = 4 << 10

// Buffer returns an empty slice to append one value to. Nothing else may be
// begun before End.
func (t *Text) Buffer() []byte {
	if t.buf == nil {
		t.buf = make([]byte, 0, 256)
	}
	return t.buf[len(t.buf):]
}

// End takes the slice that Begin gave, with the value appended, and returns
// the value as a string.
func (t *Text) End(b []byte) string {
	n := len(t.buf)
	if cap(b) > 0 && cap(t.buf)-n >= len(b) && (len(b) == 0 || unsafe.SliceData(b) == unsafe.SliceData(t.buf[n:n+1])) {
		t.buf = t.buf[:n+len(b)]
	} else {
		// The value outgrew the memory and moved; what was handed out before
		// stays where it is.
		t.buf = b
	}
	return view(b)
}

// Join returns the parts as one string.
func (t *Text) Join(parts ...string) string {
	b := t.Buffer()
	for _, p := range parts {
		b = append(b, p...)
	}
	return t.End(b)
}

func (t *Text) reset() {
	if cap(t.buf) > textKeep {
		t.buf = nil
		return
	}
	t.buf = t.buf[:0]
}

// bytesOf returns the bytes of a string that view made.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// view returns the bytes as a string without a copy. They must not change
// while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// EncodeTarget percent-encodes the octets of the path and the query that are not ASCII.
// A front calls it where there are any, before anything looks at them.
func (ex *Exchange) EncodeTarget() {
	rq, text := &ex.Request, &ex.Text
	rq.Path = text.End(uri.AppendASCII(text.Buffer(), rq.Path))
	rq.Query = text.End(uri.AppendASCII(text.Buffer(), rq.Query))
}
