package http1

import (
	"bytes"

	"headgate/internal/proto/header"
)

// trailer consumes bytes of the trailer section from src and returns how
// many.
func (d *Decoder) trailer(src []byte) int {
	if len(d.section) == 0 && len(src) >= 2 && src[0] == '\r' && src[1] == '\n' {
		d.state = finished
		return 2
	}
	n := bytes.IndexByte(src, '\n') + 1
	whole := n > 0
	if !whole {
		n = len(src)
	}
	if len(d.section)+n > d.limits.headSize() {
		d.failed = TrailerTooLarge
		return 0
	}
	d.section = append(d.section, src[:n]...)
	if !whole {
		return n
	}
	switch line := d.section[d.from:]; {
	case len(line) < 2 || line[len(line)-2] != '\r':
		d.failed = BareLF
	case bytes.IndexByte(line[:len(line)-2], '\r') >= 0:
		d.failed = BareCR
	case len(line) == 2:
		d.endTrailers()
	default:
		d.from = len(d.section)
	}
	return n
}

// endTrailers parses the trailer section, which is there whole.
func (d *Decoder) endTrailers() {
	var f facts
	_, d.failed = parseFields(d.section, 0, d.limits.fields(), &d.Trailers, &f)
	if d.failed == more {
		d.failed = BadName
	}
	if d.failed != none {
		d.Trailers.Reset()
		return
	}
	d.Trailers.DeleteFunc(func(f *header.Field) bool { return !MayTrail(f.ID, f.Name) })
	d.state = finished
}

// MayTrail reports whether a field may come behind the content, in any version of
// HTTP. Well-known fields frame or route a message, say who sent it, or direct how
// it is handled, and were decided on when the head was forwarded (RFC 9110, section
// 6.5.1), and so may not, nor may names that read as theirs; two are allowed by
// their definitions (RFC 9110, section 8.8.3; RFC 9209, section 2).
func MayTrail(id header.ID, name string) bool {
	if id == header.Other {
		id = header.Twin(name)
	}
	return id == header.Other || id == header.ETag || id == header.ProxyStatus
}
