package header

import "strings"

// Weight parses the parameters of an item of a field such as Accept-Encoding, which are its
// weight (RFC 9110, section 12.4.2), in thousandths. Without parameters it is 1000. An
// invalid one is 0, so that a client never gets what it may not accept.
func Weight(params string) int {
	params = strings.TrimSpace(params)
	if params == "" {
		return 1000
	}
	if len(params) < 3 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 0
	}
	value := params[2:]
	whole, rest, _ := strings.Cut(value, ".")
	if whole != "0" && whole != "1" || len(rest) > 3 {
		return 0
	}
	n := int(whole[0]-'0') * 1000
	unit := 100
	for i := range len(rest) {
		if rest[i]-'0' >= 10 {
			return 0
		}
		n += int(rest[i]-'0') * unit
		unit /= 10
	}
	if n > 1000 {
		return 0
	}
	return n
}
