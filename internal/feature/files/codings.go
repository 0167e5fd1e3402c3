package files

import (
	"strings"

	"headgate/internal/proto/header"
)

// coding is a content coding of which there are compressed copies.
type coding uint8

const (
	identity coding = iota
	brotli
	zstandard
	gzipped
	codings
)

// codingNames are the names of the codings, and the extensions of copies.
var codingNames = [codings]struct{ name, extension string }{
	identity: {"identity", ""}, brotli: {"br", ".br"}, zstandard: {"zstd", ".zst"}, gzipped: {"gzip", ".gz"},
}

func (c coding) name() string { return codingNames[c].name }

func (c coding) extension() string { return codingNames[c].extension }

// codingOf returns the coding with a name, identity for an unknown one.
func codingOf(name string) coding {
	for c := brotli; c < codings; c++ {
		if header.EqualFold(codingNames[c].name, name) {
			return c
		}
	}
	if header.EqualFold(name, "x-gzip") {
		return gzipped // RFC 9110, section 8.4.1.3
	}
	return identity
}

// wishes are the weights that a client gives to the codings, in thousandths.
type wishes [codings]int

// wishesOf reads Accept-Encoding (RFC 9110, section 12.5.3).
func wishesOf(h *header.List) (w wishes) {
	if !h.Has(header.AcceptEncoding) {
		w[identity] = 1000
		return w
	}
	var named [codings]bool
	others, plain := 0, -1
	for _, f := range h.All() {
		if f.ID != header.AcceptEncoding {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			weight := weightOf(params)
			switch c := codingOf(name); {
			case name == "*":
				others = weight
			case c != identity:
				w[c], named[c] = weight, true
			case header.EqualFold(name, "identity"):
				plain = weight
			}
		}
	}
	for c := brotli; c < codings; c++ {
		if !named[c] {
			w[c] = others
		}
	}
	// A client that names no weight for the plain file accepts it, and prefers what it names.
	w[identity] = max(plain, 0)
	return w
}

// best returns the coding with the highest weight, of those with the same one the first of
// the list; identity if there is none that the client accepts or it prefers the plain file.
func (w *wishes) best(list []coding) coding {
	best := identity
	for _, c := range list {
		if weight := w[c]; weight > 0 && weight >= w[identity] && (best == identity || weight > w[best]) {
			best = c
		}
	}
	return best
}

// weightOf parses a weight (RFC 9110, section 12.4.2) in thousandths. An invalid one is 0,
// so that a client never gets a coding that it may not accept.
func weightOf(params string) int {
	params = strings.TrimSpace(params)
	if params == "" {
		return 1000
	}
	if len(params) < 3 || len(params) > 7 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 0
	}
	whole, rest, _ := strings.Cut(params[2:], ".")
	if whole != "0" && whole != "1" {
		return 0
	}
	n, unit := int(whole[0]-'0')*1000, 100
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
