package clientip

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// field names a field: by id, or by name when the id is Other.
type field struct {
	id   header.ID
	name string
}

func (f *field) is(h *header.Field) bool {
	return h.ID == f.id && (f.id != header.Other || h.Is(f.name))
}

// chain goes over the elements of a list field, the last one first, over all
// lines of the field. Only what is asked for is looked at, so that a chain of
// ten thousand elements costs what its last ones cost.
type chain struct {
	lines  []header.Field // not begun yet
	field  field
	rest   string // of the line that was begun
	begun  bool
	broken bool
}

func newChain(list *header.List, f field) chain { return chain{lines: list.All(), field: f} }

// previous returns the next element to the left. Empty elements are no elements
// (RFC 9110, section 5.6.1).
func (c *chain) previous() (string, bool) {
	for !c.broken && (c.begun || c.line()) {
		comma := strings.LastIndexByte(c.rest, ',')
		if c.field.id == header.Forwarded {
			comma = c.unquoted()
		}
		element := trimmed(c.rest[comma+1:])
		if comma >= 0 {
			c.rest = c.rest[:comma]
		} else {
			c.begun = false
		}
		if element != "" && !c.broken {
			return element, true
		}
	}
	return "", false
}

// previousAddress is previous and read for what nearly all elements are.
func (c *chain) previousAddress() (a netip.Addr, ok bool) {
	if c.field.id == header.Forwarded || !c.begun && !c.line() {
		return a, false
	}
	a, comma, ok := lastDotted(c.rest)
	switch {
	case !ok:
	case comma < 0:
		c.begun = false
	default:
		c.rest = c.rest[:comma]
	}
	return a, ok
}

// trimmed returns a text without the blanks around it. Nearly always there is at
// most one, in front.
func trimmed(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// line begins the line before.
func (c *chain) line() bool {
	for i := len(c.lines) - 1; i >= 0; i-- {
		if c.field.is(&c.lines[i]) {
			c.rest, c.begun, c.lines = c.lines[i].Value, true, c.lines[:i]
			return true
		}
	}
	return false
}

// unquoted returns the place of the last comma outside of quoted strings,
// or -1. It reads from the right, so that a quote which a client left open ends
// what is believed and hides nothing that a trusted hop wrote behind it.
func (c *chain) unquoted() int {
	for i := len(c.rest) - 1; i >= 0; i-- {
		switch c.rest[i] {
		case ',':
			return i
		case '"':
			i = strings.LastIndexByte(c.rest[:i], '"')
			if i < 0 || i > 0 && c.rest[i-1] == '\\' {
				c.broken = true
				return -1
			}
		}
	}
	return -1
}

// read reads an element: the address, and the scheme where the field has one.
func (c *chain) read(text string) (a netip.Addr, proto string, ok bool) {
	if c.field.id != header.Forwarded {
		a, ok = address(text)
		return a, "", ok
	}
	node, proto, ok := element(text)
	if !ok {
		return a, "", false
	}
	a, ok = address(node)
	return a, proto, ok
}

// element reads a forwarded-element (RFC 7239, section 4): the values of for
// and proto. It is not ok when for is missing or anything cannot be read.
func element(text string) (node, proto string, ok bool) {
	for text != "" {
		pair, rest := text, ""
		if i := semicolon(text); i >= 0 {
			pair, rest = text[:i], text[i+1:]
		}
		name, value, found := header.CutPair(pair)
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		switch {
		case !found || strings.ContainsAny(value, `"\`):
			return "", "", false
		case header.EqualFold(name, "for"):
			if node != "" {
				return "", "", false
			}
			node = value
		case header.EqualFold(name, "proto"):
			proto = value
		}
		text = rest
	}
	return node, proto, node != ""
}

// semicolon returns the place of the first semicolon outside of quotes, or -1.
func semicolon(text string) int {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ';' && !quoted:
			return i
		}
	}
	return -1
}

// longestAddress is longer than any address with brackets, zone and port.
const longestAddress = 80

// address reads an address, with or without a port, brackets and a zone. The
// port and the zone are dropped, and IPv4-mapped addresses are IPv4 ones.
func address(text string) (netip.Addr, bool) {
	if text == "" || len(text) > longestAddress {
		return netip.Addr{}, false
	}
	host, bracketed := text, text[0] == '['
	if bracketed {
		end := strings.IndexByte(text, ']')
		if end < 0 || !isPort(text[end+1:]) {
			return netip.Addr{}, false
		}
		host = text[1:end]
	} else if i := strings.IndexByte(text, ':'); i >= 0 && i == strings.LastIndexByte(text, ':') {
		if !isPort(text[i:]) {
			return netip.Addr{}, false
		}
		host = text[:i]
	}
	if i := strings.IndexByte(host, '%'); i > 0 {
		if strings.IndexByte(host[:i], ':') < 0 {
			return netip.Addr{}, false // IPv4 has no zones
		}
		host = host[:i]
	}
	a, err := netip.ParseAddr(host)
	if err != nil || bracketed && !a.Is6() {
		return netip.Addr{}, false
	}
	return ipset.Plain(a), true
}

// lastDotted reads the IPv4 address that is the last element of a list, as it nearly
// always is, and returns the place of the comma before it, -1 if there is none. What it
// does not take may be an address all the same: previous and read tell.
func lastDotted(list string) (a netip.Addr, comma int, ok bool) {
	var bits uint32
	i := len(list) - 1
	for shift := 0; shift < 32; shift += 8 {
		value, digits := 0, 0
		for unit := 1; i >= 0; unit *= 10 {
			c := list[i] - '0'
			if c > 9 || digits == 3 {
				break
			}
			value += int(c) * unit
			digits++
			i--
		}
		if digits == 0 || value > 255 || digits > 1 && list[i+1] == '0' {
			return a, 0, false
		}
		bits |= uint32(value) << shift
		if shift < 24 {
			if i < 0 || list[i] != '.' {
				return a, 0, false
			}
			i--
		}
	}
	for i >= 0 && (list[i] == ' ' || list[i] == '\t') {
		i--
	}
	if i >= 0 && list[i] != ',' {
		return a, 0, false
	}
	var four [4]byte
	binary.BigEndian.PutUint32(four[:], bits)
	return netip.AddrFrom4(four), i, true
}

// isPort reports whether text is nothing, or a colon and a port. RFC 7239,
// section 6, lets a port hide behind a name that begins with "_".
func isPort(text string) bool {
	if text == "" {
		return true
	}
	if text[0] != ':' || len(text) < 2 || len(text) > 32 {
		return false
	}
	hidden := text[1] == '_'
	for i := 1; i < len(text); i++ {
		if c := text[i]; (c < '0' || c > '9') && (!hidden || !alphanumeric(c) && c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return true
}
