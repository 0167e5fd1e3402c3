// Package section checks the field sections of requests in HTTP/2 and HTTP/3,
// which have the same rules (RFC 9113, section 8; RFC 9114, section 4): the one
// at the start of a request, with its pseudo-header fields, and the trailers.
//
// A front decodes a section and passes it on field by field: Begin, Add for each
// field, then Settle, or BeginTrailers, Add, SettleTrailers. The package knows no
// frames and no compression.
package section

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// pseudo is a set of pseudo-header fields (RFC 9113, section 8.3.1).
type pseudo uint8

const (
	pseudoMethod pseudo = 1 << iota
	pseudoScheme
	pseudoAuthority
	pseudoPath
	pseudoProtocol // RFC 8441, section 4; RFC 9220, section 3
)

// Section collects the fields of one section and checks them. Begin or
// BeginTrailers prepares it. It belongs to one goroutine.
type Section struct {
	list                       *header.List // nil: no fields are expected
	trailing                   bool
	size                       int
	count                      int
	maxSize, maxCount, maxPath int
	strictTarget               bool

	seen                            pseudo
	method, scheme, authority, path string
	protocol                        string
	regular                         bool // a field that is no pseudo-header field was seen
	host                            string
	hosts, cookies                  int
	length                          int64 // Content-Length, or -1
	expect                          string
	expects                         int
	trailers                        bool // TE: trailers
	tooLarge, pathTooLong           bool
	fault                           string // the first rule that was broken
}

// Reset prepares the section for a request whose fields go into list. The port says
// how large it may be.
func (s *Section) Reset(list *header.List, port *exchange.Port) {
	*s = Section{list: list, length: -1, maxSize: port.HeadSize, maxCount: port.HeadFields, maxPath: port.URISize, strictTarget: port.StrictTarget}
}

// BeginTrailers starts the section behind a body. Its fields are added to
// list.
func (s *Section) BeginTrailers(list *header.List, port *exchange.Port) {
	s.Reset(list, port)
	s.trailing = true
}

// Add adds one field. The name and the value must be valid as long as the list.
// It returns false to stop, because there are too many fields.
func (s *Section) Add(name, value string) (more bool) {
	if s.list == nil {
		return true
	}
	// RFC 9113, section 10.5.1; RFC 9114, section 4.2.2: the size of a section
	// counts 32 bytes a field.
	s.size += len(name) + len(value) + 32
	if s.size > s.maxSize {
		s.tooLarge = true
		if name == ":path" && len(value) > s.maxPath {
			s.pathTooLong = true
		}
		return false
	}
	if s.fault != "" {
		return true
	}
	if len(name) > 0 && name[0] == ':' {
		s.addPseudo(name, value)
		return true
	}
	if s.count++; s.count > s.maxCount {
		s.tooLarge = true
		return false
	}
	s.regular = true
	s.add(name, value)
	return true
}

// addPseudo adds a pseudo-header field.
func (s *Section) addPseudo(name, value string) {
	var bit pseudo
	var to *string
	switch name {
	case ":method":
		bit, to = pseudoMethod, &s.method
	case ":scheme":
		bit, to = pseudoScheme, &s.scheme
	case ":authority":
		bit, to = pseudoAuthority, &s.authority
	case ":path":
		bit, to = pseudoPath, &s.path
	case ":protocol":
		bit, to = pseudoProtocol, &s.protocol
	default:
		s.fault = "an unknown pseudo-header field (RFC 9113, section 8.3)"
		return
	}
	switch {
	case s.trailing:
		s.fault = "a pseudo-header field in trailers (RFC 9113, section 8.1)"
	case s.regular:
		s.fault = "a pseudo-header field behind another field (RFC 9113, section 8.3)"
	case s.seen&bit != 0:
		s.fault = "a pseudo-header field twice (RFC 9113, section 8.3)"
	}
	s.seen |= bit
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
func (s *Section) checkName(name string) (classes uint8) {
	all := uint8(lowerToken)
	for i := 0; i < len(name); i++ {
		k := nameClass[name[i]]
		all &= k
		classes |= k
	}
	if all == 0 || name == "" {
		s.fault = "a field name that is no lower-case token (RFC 9113, section 8.2.1)"
	}
	return classes
}

// add takes a field that is no pseudo-header field.
func (s *Section) add(name, value string) {
	classes := s.checkName(name)
	if s.fault != "" {
		return
	}
	if !http1.ValidValue(value) {
		s.fault = "a field value with control characters, or white space at an end (RFC 9113, section 8.2.1)"
		return
	}
	id := header.Lookup(name)
	if id == header.Other && classes&odd != 0 {
		// What a server that turns names into variables takes for a framing
		// field is refused, as it is in HTTP/1.1.
		switch header.Twin(name) {
		case header.ContentLength, header.TransferEncoding:
			s.fault = "a name that reads as a framing field"
			return
		}
	}
	if s.special(id, value) || s.trailing && !http1.MayTrail(id, name) {
		return
	}
	s.list.AddKnown(id, name, value)
}

// special takes the fields that are not passed on as they are, and reports
// whether it was one of them.
func (s *Section) special(id header.ID, value string) bool {
	switch {
	case id.ConnectionSpecific():
		s.fault = "a connection-specific field (RFC 9113, section 8.2.2)"
	case id == header.TE:
		if !header.EqualFold(value, "trailers") {
			s.fault = "TE with another value than trailers (RFC 9113, section 8.2.2)"
		}
		s.trailers = true
	case id == header.Host:
		s.host = value
		s.hosts++
	case id == header.ContentLength:
		s.addLength(value)
	case id == header.Expect:
		s.expect = value
		s.expects++
	case id == header.Cookie:
		s.cookies++
		return false
	default:
		return id.HopByHop()
	}
	return true
}

// addLength reads Content-Length: once, and digits only.
func (s *Section) addLength(value string) {
	if s.length >= 0 {
		s.fault = "more than one Content-Length (RFC 9110, section 8.6)"
		return
	}
	n := http1.ParseLength(value)
	if n < 0 {
		s.fault = "Content-Length is not a number of decimal digits (RFC 9110, section 8.6)"
	}
	s.length = n
}

// SettleTrailers returns the rule that trailers broke, or "".
func (s *Section) SettleTrailers() (fault string) {
	if s.tooLarge && s.fault == "" {
		return "the trailers are larger than the limit"
	}
	return s.fault
}
