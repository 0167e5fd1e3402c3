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
				others = header.Weight(params)
			} else if a := named(name); a < algorithms {
				weights[a] = header.Weight(params)
			}
		}
	}
	return weights, others
}
