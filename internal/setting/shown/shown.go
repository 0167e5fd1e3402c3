// Package shown makes texts of strangers fit to be shown: in a log, in a page for people,
// on a terminal.
package shown

import (
	"strings"
	"unicode"
)

// Drives reports whether a terminal obeys a character, or turns text about for it: control
// characters, line breaks with them, those that format, and the separators of lines and
// paragraphs.
func Drives(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Text returns s with a character in place of each that Drives.
func Text(s string, in rune) string {
	return strings.Map(func(r rune) rune {
		if Drives(r) {
			return in
		}
		return r
	}, s)
}

// Line returns s as one line of at most max bytes, and an ellipsis where it was longer.
// Characters that drive become spaces, and bytes that are no UTF-8 question marks.
func Line(s string, max int) string {
	s = Text(strings.ToValidUTF8(s, "?"), ' ')
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "") + "…"
	}
	return s
}

// Short returns s if it has at most max bytes, which are at least 32. Else it returns the
// beginning and the end with an ellipsis between them: a message that repeats a long value
// often says behind it what is wrong.
func Short(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max / 4
	begin := max - end - len("…")
	return strings.ToValidUTF8(s[:begin], "") + "…" + strings.ToValidUTF8(s[len(s)-end:], "")
}
