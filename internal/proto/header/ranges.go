package header

import "strings"

// maxPosition is the largest position of a range; larger ones are reduced to it, so that sums
// of positions do not overflow.
const maxPosition = 1 << 53

// CutRanges returns the ranges of the value of Range, as "0-9, 20-", if its unit is bytes.
func CutRanges(value string) (set string, ok bool) {
	unit, set, found := strings.Cut(value, "=")
	return set, found && EqualFold(TrimOWS(unit), "bytes")
}

// ParseRange parses one range of bytes of a representation of a size: "0-9", "10-" or "-5"
// (RFC 9110, section 14.1.2). valid is false if it is malformed, and satisfiable is false if
// no byte is in it. Otherwise first and last are the positions of bytes of the representation.
func ParseRange(s string, size int64) (first, last int64, satisfiable, valid bool) {
	from, to, found := strings.Cut(TrimOWS(s), "-")
	if !found {
		return 0, 0, false, false
	}
	if from == "" {
		n, ok := ParsePosition(to)
		return max(0, size-n), size - 1, ok && n > 0 && size > 0, ok
	}
	first, ok := ParsePosition(from)
	if !ok {
		return 0, 0, false, false
	}
	last = size - 1
	if to != "" {
		end, ok := ParsePosition(to)
		if !ok || end < first {
			return 0, 0, false, false
		}
		last = min(last, end)
	}
	return first, last, first < size, true
}

// ParsePosition parses a position or a length in a range: digits without a sign. Numbers above
// 2^53 are reduced to it.
func ParsePosition(s string) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), maxPosition)
	}
	return n, s != ""
}
