package compression

import (
	"strings"

	"headgate/internal/proto/header"
)

// algorithm is a content coding that we can make.
type algorithm uint8

const (
	identity algorithm = iota
	gzipped
	brotlied
	zstandard
	algorithms
)

// names are the content codings as Content-Encoding has them.
var names = [algorithms]string{"identity", "gzip", "br", "zstd"}

// usual are the algorithms of settings that name none.
var usual = []string{"zstd", "br", "gzip"}

func named(name string) algorithm {
	for a := identity; a < algorithms; a++ {
		if header.EqualFold(names[a], name) {
			return a
		}
	}
	if header.EqualFold(name, "x-gzip") {
		return gzipped // RFC 9110, section 8.4.1.3
	}
	return algorithms
}

// wish is what the client says of content codings.
type wish struct {
	// best is what it gets of ours, identity if it wants none.
	best algorithm
	// plain says that identity is acceptable.
	plain bool
}

// unsaid is the weight of a coding that the client does not name.
const unsaid = -1

// wishOf reads Accept-Encoding (RFC 9110, section 12.5.3): of the codings that the
// client likes best, the one that stands first in order.
func wishOf(list *header.List, order []algorithm) wish {
	if !list.Has(header.AcceptEncoding) {
		return wish{identity, true}
	}
	weights, others := weightsOf(list)
	w := wish{best: identity}
	highest := 0
	for _, a := range order {
		weight := weights[a]
		if weight == unsaid {
			weight = max(others, 0)
		}
		if weight > highest {
			w.best, highest = a, weight
		}
	}
	switch plain := weights[identity]; {
	case plain == unsaid:
		w.plain = others != 0
	default:
		w.plain = plain > 0
		if plain > highest {
			w.best = identity
		}
	}
	return w
}

// weightsOf returns the weights of the codings in thousandths, and that of all
// others.
func weightsOf(list *header.List) (weights [algorithms]int, others int) {
	for a := range weights {
		weights[a] = unsaid
	}
	others = unsaid
	for _, f := range list.All() {
		if f.ID != header.AcceptEncoding {
			continue
		}
		for part := range strings.SplitSeq(f.Value, ",") {
			name, params, _ := strings.Cut(part, ";")
			name = strings.TrimSpace(name)
			if name == "*" {
				others = weightOf(params)
			} else if a := named(name); a < algorithms {
				weights[a] = weightOf(params)
			}
		}
	}
	return weights, others
}

// weightOf parses a weight (RFC 9110, section 12.4.2) in thousandths. An invalid one is 0,
// so that a client never gets a coding that it may not accept.
func weightOf(params string) int {
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
