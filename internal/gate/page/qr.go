package page

import (
	"fmt"
	"strings"

	"rsc.io/qr"

	m "headgate/internal/markup"
)

// quiet is the width of the margin around a QR code, in modules (ISO/IEC 18004).
const quiet = 4

// qrCode returns the QR code of a text as an SVG image with a name. It is black on white in
// dark mode, too: many cameras read no other. A text that is too long has none.
func qrCode(text, name string) m.List {
	c, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil
	}
	var path strings.Builder
	for y := range c.Size {
		for x := 0; x < c.Size; x++ {
			from := x
			for x < c.Size && c.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from+quiet, y+quiet, x-from, x-from)
			}
		}
	}
	size := c.Size + 2*quiet
	return m.List{m.El("svg", m.Class("qr"), m.At("role", "img"), m.At("aria-label", name), m.At("viewBox", fmt.Sprintf("0 0 %d %d", size, size)),
		m.El("path", m.At("fill", "#fff"), m.At("d", fmt.Sprintf("M0 0h%dv%dH0z", size, size))),
		m.El("path", m.At("d", path.String())),
	)}
}

// spaced returns a secret in groups of four characters, as people copy it.
func spaced(secret string) string {
	var b strings.Builder
	for i := range len(secret) {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteByte(secret[i])
	}
	return b.String()
}
