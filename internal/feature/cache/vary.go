package cache

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// codings is a set of content codings.
type codings uint8

// The codings that are distinguished.
const (
	gzip codings = 1 << iota
	brotli
	zstd
	deflate
	otherCoding
	noIdentity // identity;q=0
	mixed      // of a response: several codings, or one that is not known
	// byWeight says that the weights decide more than what is accepted: one cannot
	// be read, or identity is liked as well as anything else.
	byWeight
)

// variant is the result of Vary for the request that a response was stored
// for. The names of the fields are in the entry's head.
type variant struct {
	// encoding means that Accept-Encoding is among the fields; asked is what
	// the request accepted and coding what the response has.
	encoding      bool
	asked, coding codings
	// set is the hash of the names of all other fields, 0 if there are none, and
	// values that of what the request had in them.
	set, values uint64
	names       int // bytes of the names in the head
}

// codingBit returns the bit of a coding.
func codingBit(name string) codings {
	switch {
	case header.EqualFold(name, "gzip"), header.EqualFold(name, "x-gzip"):
		return gzip
	case header.EqualFold(name, "br"):
		return brotli
	case header.EqualFold(name, "zstd"):
		return zstd
	case header.EqualFold(name, "deflate"):
		return deflate
	}
	return otherCoding
}

// accepted returns what a request's Accept-Encoding headers accept. Weights only exclude:
// the server chooses among the accepted codings. Headers with which it may send the plain
// body to a client that accepts another coding are distinguished, so that other clients do
// not get that.
func accepted(list *header.List) (all codings) {
	if !list.Has(header.AcceptEncoding) {
		return 0
	}
	best, plain := 0, 0
	for _, f := range list.All() {
		if f.ID != header.AcceptEncoding {
			continue
		}
		for rest := f.Value; rest != ""; {
			var part string
			part, rest, _ = strings.Cut(rest, ",")
			name, weight, _ := strings.Cut(part, ";")
			name = header.TrimOWS(name)
			zero := isZero(weight)
			n, ok := header.ParseWeight(weight)
			if !ok {
				all |= byWeight
			}
			switch {
			case name == "":
			case header.EqualFold(name, "identity"):
				if plain = n; zero {
					all |= noIdentity
				}
			case name == "*":
				if zero {
					all |= noIdentity
				} else {
					all |= gzip | brotli | zstd | deflate | otherCoding
					best = max(best, n)
				}
			case !zero:
				all |= codingBit(name)
				best = max(best, n)
			}
		}
	}
	if best > 0 && plain >= best {
		all |= byWeight
	}
	return all
}

// isZero reports whether a weight is q=0.
func isZero(weight string) bool {
	weight = header.TrimOWS(weight)
	if len(weight) < 3 || weight[0]|0x20 != 'q' || weight[1] != '=' || weight[2] != '0' {
		return false
	}
	return strings.Trim(weight[2:], "0.") == ""
}

// coded returns the coding of a response.
func coded(list *header.List) codings {
	switch text := list.Get(header.ContentEncoding); {
	case list.Count(header.ContentEncoding) > 1:
		return mixed
	case text == "", header.EqualFold(text, "identity"):
		return 0
	case codingBit(text) == otherCoding:
		return mixed
	default:
		return codingBit(text)
	}
}

// accepts reports whether a server would choose a response with this variant
// for a request that accepts asked: it offers the same choice, or a smaller
// one that includes what was chosen.
func (v *variant) accepts(asked codings) bool {
	switch {
	case !v.encoding || asked == v.asked:
		return true
	case v.coding == mixed || asked&^v.asked != 0 || v.asked&byWeight != asked&byWeight:
		return false
	case v.coding == 0:
		return asked&noIdentity == 0
	}
	return asked&v.coding != 0
}

// readVary makes the variant of a response and appends the names of its other
// fields to b. It returns false for "Vary: *", which no request matches, and when
// the request has an alias of a field that Vary names ("Accept_Language"): its
// value is in no key.
func (h *hit) readVary(b []byte, rs, rq *header.List) ([]byte, variant, bool) {
	var v variant
	if !rs.Has(header.Vary) {
		return b, v, true
	}
	begin := len(b)
	for _, f := range rs.All() {
		if f.ID != header.Vary {
			continue
		}
		for rest := f.Value; rest != ""; {
			var name string
			name, rest, _ = strings.Cut(rest, ",")
			switch name = header.TrimOWS(name); {
			case name == "":
			case name == "*", hasTwin(rq, name):
				return b, v, false
			case header.EqualFold(name, "Accept-Encoding"):
				v.encoding = true
			default:
				b = append(append(b, name...), ',')
			}
		}
	}
	v.names = len(b) - begin
	if v.encoding {
		v.asked, v.coding = h.codings(rq), coded(rs)
	}
	if v.names > 0 {
		names := b[begin:]
		v.set = h.store.hash(names) | 1
		v.values = h.values(v.set, view(names), rq)
	}
	return b, v, true
}

// variesByCoding reports whether Vary names Accept-Encoding.
func variesByCoding(list *header.List) bool {
	for _, f := range list.All() {
		if f.ID != header.Vary {
			continue
		}
		for part := range strings.SplitSeq(f.Value, ",") {
			if header.EqualFold(header.TrimOWS(part), "Accept-Encoding") {
				return true
			}
		}
	}
	return false
}

// hasTwin reports whether the request has another field that a server may confuse
// with the one of this name.
func hasTwin(rq *header.List, name string) bool {
	for _, f := range rq.All() {
		if f.ID == header.Other && !f.Is(name) && header.Twins(f.Name, name) {
			return true
		}
	}
	return false
}

// codings returns what the request accepts.
func (h *hit) codings(rq *header.List) codings {
	if !h.codingsKnown {
		h.codingsKnown, h.asked = true, accepted(rq)
	}
	return h.asked
}

// values returns the hash of what a request has in the named fields.
func (h *hit) values(set uint64, names string, rq *header.List) uint64 {
	if h.set == set {
		return h.setValues
	}
	b := h.scratch[:0]
	for names != "" {
		var name string
		name, names, _ = strings.Cut(names, ",")
		b = appendValues(b, name, rq)
		b = append(b, 0)
	}
	h.scratch = b
	h.set, h.setValues = set, h.store.hash(b)
	return h.setValues
}

// appendValues appends the value of a field in one form: lines joined, and no
// white space around commas (RFC 9111, section 4.1). An absent field differs from
// an empty one.
func appendValues(b []byte, name string, list *header.List) []byte {
	id := header.Lookup(name)
	if id != header.Other && !list.Has(id) {
		return b
	}
	fold := id == header.AcceptLanguage
	found := false
	for i := range list.All() {
		f := &list.All()[i]
		if f.ID != id || id == header.Other && !f.Is(name) {
			continue
		}
		if found {
			b = append(b, ',')
		} else {
			b = append(b, 1)
		}
		found = true
		b = appendNormal(b, f.Value, fold)
	}
	return b
}

func appendNormal(b []byte, value string, fold bool) []byte {
	for first := true; ; first = false {
		part, rest, more := strings.Cut(value, ",")
		if !first {
			b = append(b, ',')
		}
		at := len(b)
		b = append(b, header.TrimOWS(part)...)
		for i := at; fold && i < len(b); i++ {
			if c := b[i]; 'A' <= c && c <= 'Z' {
				b[i] |= 0x20
			}
		}
		if !more {
			return b
		}
		value = rest
	}
}

// selects reports whether an entry is a response to the request (RFC 9111,
// section 4.1).
func (h *hit) selects(e *entry, ex *exchange.Exchange) bool {
	if e.part.total > 0 && !e.part.has(ex) || (e.part.total > 0 || e.brief) && h.usability(e) < byClient {
		return false // and it is not validated
	}
	return h.matches(e, ex)
}

// replaces reports whether a new entry for the request replaces another one: the one that
// the request would have used, or one that is redundant. A partial response does not
// replace the complete one of the same version.
func (h *hit) replaces(e, old *entry) bool {
	if e.part.total > 0 && old.part.total == 0 && opaque(e.etag) == opaque(old.etag) && e.lastMod == old.lastMod {
		return false
	}
	return h.selects(old, h.ex) || (old.brief || old.part.total > 0 && e.part.total == 0) && h.matches(old, h.ex)
}

// matches reports whether an entry is the variant for a request.
func (h *hit) matches(e *entry, ex *exchange.Exchange) bool {
	v := &e.variant
	if v.encoding && !v.accepts(h.codings(&ex.Request.Header)) {
		return false
	}
	return v.set == 0 || h.values(v.set, e.varyNames(), &ex.Request.Header) == v.values
}
