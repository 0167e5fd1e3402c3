package header

// tokenBytes has a bit for each byte that may be in a token (RFC 9110, section 5.6.2).
var tokenBytes = tokenBits("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

func tokenBits(of string) (bits [256 / 64]uint64) {
	for i := range len(of) {
		bits[of[i]>>6] |= 1 << (of[i] & 63)
	}
	return bits
}

// TokenByte reports whether a byte may be in a token (RFC 9110, section 5.6.2).
func TokenByte(c byte) bool { return tokenBytes[c>>6]>>(c&63)&1 != 0 }

// ValidName reports whether s can be a field name, which is a token.
func ValidName(s string) bool {
	for i := range len(s) {
		if !TokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}
