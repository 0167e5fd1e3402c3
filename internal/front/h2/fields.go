package h2

import (
	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/header"
	"headgate/internal/http1"
)

// pseudo is a set of pseudo-header fields (RFC 9113, section 8.3.1).
type pseudo uint8

const (
	pseudoMethod pseudo = 1 << iota
	pseudoScheme
	pseudoAuthority
	pseudoPath
)

// fields collects a field block while it is decoded and judges it. fault is the
// first rule that was broken.
type fields struct {
	list                          *header.List // nil: nothing is wanted
	trailing                      bool
	size                          int
	count                         int
	sizeMost, countMost, pathMost int

	seen                            pseudo
	method, scheme, authority, path string
	regular                         bool // a field that is no pseudo-header field was seen
	host                            string
	hosts, cookies                  int
	length                          int64 // Content-Length, or -1
	expect                          string
	expects                         int
	trailers                        bool // TE: trailers
	tooLarge, pathTooLong           bool
	fault                           string
}

func (f *fields) begin(list *header.List, port *exchange.Port) {
	*f = fields{list: list, length: -1, sizeMost: port.HeadSize, countMost: port.HeadFields, pathMost: port.URISize}
}

// beginTrailers begins a block behind a body and returns the list it fills.
func (f *fields) beginTrailers(port *exchange.Port) *header.List {
	list := &header.List{}
	f.begin(list, port)
	f.trailing = true
	return list
}

// emit takes one field from the decoder.
func (c *Conn) emit(hf hpack.HeaderField) {
	f := &c.block.fields
	if f.list == nil {
		return
	}
	// RFC 9113, section 10.5.1: the size of a list counts 32 bytes a field.
	f.size += len(hf.Name) + len(hf.Value) + 32
	if f.size > f.sizeMost {
		f.tooLarge = true
		if hf.Name == ":path" && len(hf.Value) > f.pathMost {
			f.pathTooLong = true
		}
		c.hpack.SetEmitEnabled(false)
		return
	}
	if f.fault != "" {
		return
	}
	if len(hf.Name) > 0 && hf.Name[0] == ':' {
		f.addPseudo(hf.Name, hf.Value)
		return
	}
	if f.count++; f.count > f.countMost {
		f.tooLarge = true
		c.hpack.SetEmitEnabled(false)
		return
	}
	f.regular = true
	f.add(hf.Name, hf.Value)
}

// addPseudo takes a pseudo-header field.
func (f *fields) addPseudo(name, value string) {
	var bit pseudo
	var to *string
	switch name {
	case ":method":
		bit, to = pseudoMethod, &f.method
	case ":scheme":
		bit, to = pseudoScheme, &f.scheme
	case ":authority":
		bit, to = pseudoAuthority, &f.authority
	case ":path":
		bit, to = pseudoPath, &f.path
	default:
		f.fault = "an unknown pseudo-header field (RFC 9113, section 8.3)"
		return
	}
	switch {
	case f.trailing:
		f.fault = "a pseudo-header field in trailers (RFC 9113, section 8.1)"
	case f.regular:
		f.fault = "a pseudo-header field behind another field (RFC 9113, section 8.3)"
	case f.seen&bit != 0:
		f.fault = "a pseudo-header field twice (RFC 9113, section 8.3)"
	}
	f.seen |= bit
	*to = value
}

// Classes of bytes in names.
const (
	lowerToken = 1 << iota // of a token, but no capital (RFC 9113, section 8.2.1)
	odd                    // neither letter, digit nor hyphen
)

var nameClass = func() (t [256]uint8) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyz-") {
		t[c] = lowerToken
	}
	for _, c := range []byte("!#$%&'*+.^_`|~") {
		t[c] = lowerToken | odd
	}
	return t
}()

// checkName judges a name and returns its classes.
func (f *fields) checkName(name string) (classes uint8) {
	all := uint8(lowerToken)
	for i := 0; i < len(name); i++ {
		k := nameClass[name[i]]
		all &= k
		classes |= k
	}
	if all == 0 || name == "" {
		f.fault = "a field name that is no lower-case token (RFC 9113, section 8.2.1)"
	}
	return classes
}

// add takes a field that is no pseudo-header field.
func (f *fields) add(name, value string) {
	classes := f.checkName(name)
	if f.fault != "" {
		return
	}
	if !http1.ValidValue(value) {
		f.fault = "a field value with control characters, or white space at an end (RFC 9113, section 8.2.1)"
		return
	}
	id := header.Lookup(name)
	if id == header.Other && classes&odd != 0 {
		// What a server that turns names into variables takes for a framing
		// field is refused, as it is in HTTP/1.1.
		switch http1.Twin(name) {
		case header.ContentLength, header.TransferEncoding:
			f.fault = "a name that reads as a framing field"
			return
		}
	}
	if f.special(id, value) || f.trailing && !f.trails(id, name) {
		return
	}
	f.list.AddKnown(id, name, value)
}

// trails reports whether a field may come behind the content (RFC 9110, section
// 6.5.1): the same ones that are taken from HTTP/1.1.
func (f *fields) trails(id header.ID, name string) bool {
	if id == header.Other {
		id = http1.Twin(name)
	}
	return id == header.Other || id == header.ETag || id == header.ProxyStatus
}

// special takes the fields that are not passed on as they are, and reports
// whether it was one of them.
func (f *fields) special(id header.ID, value string) bool {
	switch id {
	case header.Connection, header.ProxyConnection, header.KeepAlive, header.TransferEncoding, header.Upgrade:
		f.fault = "a connection-specific field (RFC 9113, section 8.2.2)"
	case header.TE:
		if !header.EqualFold(value, "trailers") {
			f.fault = "TE with another value than trailers (RFC 9113, section 8.2.2)"
		}
		f.trailers = true
	case header.Host:
		f.host = value
		f.hosts++
	case header.ContentLength:
		f.addLength(value)
	case header.Expect:
		f.expect = value
		f.expects++
	case header.Cookie:
		f.cookies++
		return false
	default:
		return id.HopByHop()
	}
	return true
}

// addLength reads Content-Length: once, and digits only.
func (f *fields) addLength(value string) {
	if f.length >= 0 {
		f.fault = "more than one Content-Length (RFC 9110, section 8.6)"
		return
	}
	n := int64(0)
	for i := 0; i < len(value); i++ {
		d := value[i] - '0'
		if d > 9 || n > (1<<63-10)/10 {
			n = -1
			break
		}
		n = n*10 + int64(d)
	}
	if n < 0 || value == "" {
		f.fault = "Content-Length is not a number of decimal digits (RFC 9110, section 8.6)"
	}
	f.length = n
}

// settleTrailers returns the rule that trailers broke, or "".
func (f *fields) settleTrailers() string {
	if f.tooLarge && f.fault == "" {
		return "the trailers are larger than the limit"
	}
	return f.fault
}
