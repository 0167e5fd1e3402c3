package header

import "strings"

// Weight parses the parameters of an item of a field such as Accept-Encoding, which are its
// weight (RFC 9110, section 12.4.2), in thousandths. Without parameters it is 1000. An
// invalid one is 0, so that a client never gets what it may not accept.
func Weight(params string) int {
	n, ok := ParseWeight(params)
	if !ok {
		return 0
	}
	return n
}

// ParseWeight is Weight for callers that handle an invalid weight themselves: ok is false.
func ParseWeight(params string) (n int, ok bool) {
	params = TrimOWS(params)
	if params == "" {
		return 1000, true
	}
	if len(params) < 3 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 0, false
	}
	whole, rest, _ := strings.Cut(params[2:], ".")
	if whole != "0" && whole != "1" || len(rest) > 3 {
		return 0, false
	}
	n = int(whole[0]-'0') * 1000
	for i, unit := 0, 100; i < len(rest); i, unit = i+1, unit/10 {
		if rest[i]-'0' > 9 {
			return 0, false
		}
		n += int(rest[i]-'0') * unit
	}
	return n, n <= 1000
}
