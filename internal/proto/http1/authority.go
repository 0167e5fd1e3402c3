package http1

import "net/netip"

// maxHost is the longest host name (RFC 1035, section 2.3.4), with a final dot.
const maxHost = 255

// maxPort is the longest port, in digits: leading zeros make no difference to it.
const maxPort = 16

// SplitAuthority splits an authority, as in Host and the target, into host and port.
// The host keeps the brackets of an IPv6 address; the port is empty if there is none.
// ok is false unless the host is a name according to RFC 3986, section 3.2.2, with
// single dots, an IPv4 address or an IPv6 address in brackets, and the port is absent,
// empty or between 1 and 65535.
//
// Rejected is what two readers may interpret as different hosts, though the RFC allows
// it: a comma, which separates list members where a field contains the host, and
// encoded bytes except unreserved characters, which AppendDecoded decodes.
func SplitAuthority(s string) (host, port string, ok bool) {
	if len(s) > 0 && s[0] == '[' {
		return splitIPv6(s)
	}
	i, dot := 0, true // dot: at the beginning or behind a dot
	for i < len(s) {
		c, size := s[i], 1
		if class[c]&hostc == 0 {
			if c == '%' {
				c, size = encoded(s[i:]), 3
			}
			if class[c]&(hostc|delim) == 0 || size > 1 && class[c]&hostc == 0 {
				break
			}
		}
		if c == '.' && dot {
			return "", "", false
		}
		dot = c == '.'
		i += size
	}
	if i == 0 || i > maxHost {
		return "", "", false
	}
	if i == len(s) {
		return s, "", true
	}
	return s[:i], s[i+1:], s[i] == ':' && validPort(s[i+1:])
}

// encoded returns the byte that is percent-encoded at the start of s, or 0.
func encoded(s string) byte {
	if len(s) < 3 {
		return 0
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	if hi|lo > 15 {
		return 0
	}
	return hi<<4 | lo
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}

// AppendDecoded appends an authority accepted by SplitAuthority with its encoded characters
// decoded: "%61.example" becomes "a.example" (RFC 3986, section 6.2.2.2).
func AppendDecoded(dst []byte, authority string) []byte {
	for i := 0; i < len(authority); i++ {
		c := authority[i]
		if c == '%' {
			c = encoded(authority[i:])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}

func splitIPv6(s string) (host, port string, ok bool) {
	end := 1
	for end < len(s) && s[end] != ']' {
		if s[end] == '%' {
			return "", "", false // a zone means nothing to another machine
		}
		end++
	}
	if end == len(s) {
		return "", "", false
	}
	if a, err := netip.ParseAddr(s[1:end]); err != nil || !a.Is6() {
		return "", "", false
	}
	host, rest := s[:end+1], s[end+1:]
	if rest == "" {
		return host, "", true
	}
	return host, rest[1:], rest[0] == ':' && validPort(rest[1:])
}

// validPort reports whether a port may be one: it is empty, which says nothing (RFC
// 3986, section 3.2.3), or a number from 1 to 65535.
func validPort(s string) bool {
	if s == "" {
		return true
	}
	if len(s) > maxPort {
		return false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if class[s[i]]&digit == 0 {
			return false
		}
		if n = n*10 + int(s[i]-'0'); n > 65535 {
			return false
		}
	}
	return n > 0
}
