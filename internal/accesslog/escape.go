package accesslog

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// bounded returns at most limit bytes of s, cut between characters, and
// whether it was cut.
func bounded(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for i := range utf8.UTFMax {
		if utf8.RuneStart(s[limit-i]) {
			return s[:limit-i], true
		}
	}
	return s[:limit], true
}

// appendText appends s as a JSON string of at most limit bytes of s. Control
// characters, those of terminals among them (U+007F to U+009F), are escaped;
// bytes that are not UTF-8 become U+FFFD.
func appendText(b []byte, s string, limit int) []byte {
	s, cut := bounded(s, limit)
	b = append(b, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[begin:i]...)
			b = appendEscape(b, c)
			i++
			begin = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if kept(r, size) {
			i += size
			continue
		}
		b = append(b, s[begin:i]...)
		b = appendRune(b, r)
		i += size
		begin = i
	}
	b = append(b, s[begin:]...)
	if cut {
		b = append(b, "…"...)
	}
	return append(b, '"')
}

// kept reports whether JSON contains a non-ASCII character unescaped. The
// line separators of JavaScript and the characters that change the direction
// of text are escaped: they can disguise a line.
func kept(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size == 1, r < 0xa0:
		return false
	case r == 0x2028, r == 0x2029, r == 0x200e, r == 0x200f:
		return false
	case 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return false
	}
	return true
}

// appendEscape appends an ASCII character that must be escaped in JSON.
func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return appendRune(b, rune(c))
}

// appendRune appends a character below U+10000 as \uXXXX.
func appendRune(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// appendQuoted appends s for a place between quotes in the combined form, as
// nginx does: quotes, backslashes, control characters and all bytes beyond
// ASCII as \xXX.
func appendQuoted(b []byte, s string, limit int) []byte {
	return appendBytes(b, s, limit, ' ')
}

// appendWord appends s for a place without quotes in the combined form: blanks
// are escaped too, and an empty word is "-".
func appendWord(b []byte, s string, limit int) []byte {
	return appendBytes(b, orDash(s), limit, ' '+1)
}

// appendBytes appends s with all bytes below lowest escaped, and those that
// are never plain.
func appendBytes(b []byte, s string, limit int, lowest byte) []byte {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
	}
	begin := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= lowest && c < 0x7f && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[begin:i]...)
		b = append(b, '\\', 'x', hexUpper[c>>4], hexUpper[c&15])
		begin = i + 1
	}
	b = append(b, s[begin:]...)
	if cut {
		b = append(b, "..."...)
	}
	return b
}

const hexUpper = "0123456789ABCDEF"
