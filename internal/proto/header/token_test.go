package header

import (
	"strings"
	"testing"
)

// TestValidName compares each byte with the grammar of a token (RFC 9110, section 5.6.2).
func TestValidName(t *testing.T) {
	for c := range 256 {
		b := byte(c)
		want := b < 0x7f && b > ' ' && !strings.ContainsRune("\"(),/:;<=>?@[\\]{}", rune(b))
		if got := TokenByte(b); got != want {
			t.Errorf("byte %#x in a token: %v, want %v", b, got, want)
		}
		if got := ValidName("x" + string([]byte{b})); got != want {
			t.Errorf("name with byte %#x: %v, want %v", b, got, want)
		}
	}
	if ValidName("") {
		t.Error("the empty name is valid")
	}
}
