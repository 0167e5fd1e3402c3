package shown

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, v := range []struct{ in, want string }{
		{"as it is, ä", "as it is, ä"},
		{"a\x1b[31m\nb\u009bc\u202ed\u2028e", "a [31m b c d e"},
		{"\xff", "?"},
		{"0123456789abcdefg", "0123456789abcdef…"},
		{"0123456789abcdeä", "0123456789abcde…"}, // no half of a character
	} {
		if got := Line(v.in, 16); got != v.want {
			t.Errorf("%q: got %q, want %q", v.in, got, v.want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, v := range []struct{ in, want string }{
		{"as it is", "as it is"},
		{strings.Repeat("a", 40), strings.Repeat("a", 40)},
		{strings.Repeat("a", 400) + "is wrong", strings.Repeat("a", 27) + "…" + "aais wrong"},
		{strings.Repeat("ä", 200), strings.Repeat("ä", 13) + "…" + strings.Repeat("ä", 5)},
	} {
		got := Short(v.in, 40)
		if got != v.want || len(got) > 40 || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, want %q", v.in, got, v.want)
		}
	}
}
