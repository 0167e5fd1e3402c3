package proxyproto

import (
	"bytes"
	"net/netip"
	"strings"
)

// prefix1 is the start of a header of version 1 (PP, section 2.1).
const prefix1 = "PROXY "

// shortestFields are the fewest bytes of the four fields behind the family, for
// IPv4 and IPv6.
var shortestFields = [2][4]int{{7, 7, 1, 1}, {2, 2, 1, 1}}

// need1 is need for version 1. The line has no length, so what can be known is
// how many separators and how many bytes of fields have still to come.
func need1(b []byte) (int, error) {
	switch {
	case len(b) < shortest:
		return shortest - len(b), nil
	case bytes.HasSuffix(b, []byte("\r\n")):
		return 0, nil
	case len(b) >= longest1:
		return 0, ErrInvalid
	case b[len(b)-1] == '\r':
		return 1, nil
	}
	family, rest, ok := strings.Cut(string(b[len(prefix1):]), " ")
	at := 0
	switch {
	case family == "UNKNOWN":
		return 1, nil // what follows has no form (PP, section 2.1)
	case !ok:
		return 0, ErrInvalid
	case family == "TCP4":
	case family == "TCP6":
		at = 1
	default:
		return 0, ErrInvalid
	}
	field := strings.Count(rest, " ")
	if field > 3 {
		return 0, ErrInvalid
	}
	more := len("\r\n")
	for _, n := range shortestFields[at][field+1:] {
		more += 1 + n
	}
	return min(more, longest1-len(b)), nil
}

// parse1 reads a line of version 1: "PROXY TCP4 source destination port port".
// Addresses have their usual form and ports have no leading zeros.
func parse1(b []byte) (Header, error) {
	line := string(b[:len(b)-2])
	if strings.ContainsAny(line, "\r\n") {
		return Header{}, ErrInvalid
	}
	f := strings.Split(line, " ")
	switch {
	case f[1] == "UNKNOWN":
		return Header{}, nil
	case len(f) != 6:
		return Header{}, ErrInvalid
	}
	source, ok := endpoint(f[1], f[2], f[4])
	destination, ok2 := endpoint(f[1], f[3], f[5])
	if !ok || !ok2 {
		return Header{}, ErrInvalid
	}
	return Header{source, destination}, nil
}

// endpoint reads an address and a port number of a family.
func endpoint(family, address, port string) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" || a.Is4() != (family == "TCP4") {
		return netip.AddrPort{}, false
	}
	if port == "" || len(port) > 5 || port[0] == '0' && port != "0" {
		return netip.AddrPort{}, false
	}
	n := 0
	for _, c := range []byte(port) {
		if c < '0' || c > '9' {
			return netip.AddrPort{}, false
		}
		n = 10*n + int(c-'0')
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), n <= 0xffff
}
