package section

import (
	"strings"

	"headgate/internal/proto/header"
)

// maxPriority limits the priority header that is parsed, in bytes.
const maxPriority = 64

// defaultUrgency is the urgency of what has none (RFC 9218, section 4.1).
const defaultUrgency = 3

// Priority reads a Priority field (RFC 9218, section 4). What it does not
// say has the default; what cannot be read is ignored.
func Priority(text string) (urgency uint8, rotates bool) {
	urgency = defaultUrgency
	if len(text) > maxPriority {
		return urgency, rotates
	}
	for part := range strings.SplitSeq(text, ",") {
		part, _, _ = strings.Cut(header.TrimOWS(part), ";")
		switch {
		case len(part) == 3 && part[:2] == "u=" && '0' <= part[2] && part[2] <= '7':
			urgency = part[2] - '0'
		case part == "i", part == "i=?1":
			rotates = true
		case part == "i=?0":
			rotates = false
		}
	}
	return urgency, rotates
}
