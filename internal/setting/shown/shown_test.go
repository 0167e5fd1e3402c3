package shown

import "testing"

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
