package page

import (
	"mime"
	"strings"
)

// Escaping returns what makes the value of a variable harmless in a text of this
// media type. What a client writes in a path or query must not become a part of
// a page.
func Escaping(mediaType string) func([]byte, int) []byte {
	kind, _, _ := mime.ParseMediaType(mediaType)
	switch {
	case strings.Contains(kind, "html"), strings.Contains(kind, "xml"):
		return escapeMarkup
	case strings.Contains(kind, "json"), strings.Contains(kind, "javascript"):
		return escapeJSON
	}
	return func(b []byte, _ int) []byte { return b }
}

func escapeMarkup(b []byte, from int) []byte {
	return replace(b, from, func(c byte) string {
		switch c {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		case '"':
			return "&#34;"
		case '\'':
			return "&#39;"
		}
		return ""
	})
}

func escapeJSON(b []byte, from int) []byte {
	return replace(b, from, func(c byte) string {
		const hex = "0123456789abcdef"
		if c < ' ' || strings.IndexByte("\"\\<>&'", c) >= 0 {
			return string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		}
		return ""
	})
}

// replace puts what with returns in the place of bytes of b from an index on; ""
// keeps the byte.
func replace(b []byte, from int, with func(byte) string) []byte {
	value := string(b[from:])
	b = b[:from]
	for i := range len(value) {
		if s := with(value[i]); s != "" {
			b = append(b, s...)
		} else {
			b = append(b, value[i])
		}
	}
	return b
}
