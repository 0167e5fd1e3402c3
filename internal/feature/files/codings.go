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
			weight := header.Weight(params)
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
