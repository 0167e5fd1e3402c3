package http1

import "net/netip"

// maxHost is the longest host name (RFC 1035, section 2.3.4), with a final dot.
const maxHost = 255

// SplitAuthority takes an authority, as Host and the target hold it, apart. The
// host keeps the brackets of an IPv6 address; the port is empty if there is
// none. ok is false unless the host is a name of letters, digits, "-", "_", "~"
// and single dots, an IPv4 address or an IPv6 address in brackets, and the
// port, if any, is between 1 and 65535 without leading zeros.
//
// RFC 3986 lets a registered name hold percent-encoding, "!$&'()*+;=" and ","
// as well. No name in use does, servers disagree on them, and so they are
// refused here.
func SplitAuthority(s string) (host, port string, ok bool) {
	if len(s) > 0 && s[0] == '[' {
		return splitIPv6(s)
	}
	i, dot := 0, true // dot: at the beginning or behind a dot
	for ; i < len(s) && class[s[i]]&hostc != 0; i++ {
		if s[i] == '.' && dot {
			return "", "", false
		}
		dot = s[i] == '.'
	}
	if i == 0 || i > maxHost {
		return "", "", false
	}
	if i == len(s) {
		return s, "", true
	}
	return s[:i], s[i+1:], s[i] == ':' && validPort(s[i+1:])
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

func validPort(s string) bool {
	if len(s) == 0 || len(s) > 5 || s[0] == '0' {
		return false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if class[s[i]]&digit == 0 {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n <= 65535
}
