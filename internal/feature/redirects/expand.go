package redirects

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

const tooLong = "the redirect's target is too long"

// append appends the URL for a match in the path of ex. What is not "" tells why
// there is none.
func (t *target) append(b []byte, ex *exchange.Exchange, match []int) (made []byte, what string) {
	rq := &ex.Request
	start, open := len(b), t.absolute
	for i := range t.parts {
		p := &t.parts[i]
		from := len(b)
		b = p.Append(b, ex, rq.Path, match)
		switch p.role {
		case host, hostName:
			if b = trimHost(b, from, p.role == host && t.sameScheme(b[start:from], rq.Scheme)); len(b) == from {
				return b, "the request has no Host to send it to"
			}
		case label:
			if !isLabel(b[from:]) {
				return b, "the redirect's target would have a host that is none"
			}
		case beginsPath:
			if open && len(b) == from {
				b = append(b, '/')
			} else if open && b[from] != '/' {
				return b, "the redirect's target would have another host than is written"
			}
			open = false
			b = encode(b, from, inPath)
		case inPath, inQuery, wholeQuery:
			b = encode(b, from, p.role)
		}
		if len(b)-start > longest {
			return b, tooLong
		}
	}
	if !t.absolute {
		b = oneSlash(b, start)
	}
	return t.appendQuery(b, rq.Query), ""
}

// appendQuery appends the request's query if the target has none. A target that
// ends in a question mark has an empty one.
func (t *target) appendQuery(b []byte, query string) []byte {
	if t.ownQuery {
		if b[len(b)-1] == '?' {
			b = b[:len(b)-1]
		}
		return b
	}
	from := len(b)
	return encode(append(b, query...), from, wholeQuery)
}

// sameScheme reports whether a URL begins with the request's scheme, so that the
// port in the request's Host holds for it.
func (t *target) sameScheme(url []byte, scheme string) bool {
	return len(url) > len(scheme) && url[len(scheme)] == ':' && header.EqualFold(string(url[:len(scheme)]), scheme)
}

// trimHost takes the port off the host that begins at from, unless it is to stay.
func trimHost(b []byte, from int, stays bool) []byte {
	if stays {
		return b
	}
	if i := strings.LastIndexByte(string(b[from:]), ':'); i >= 0 && !strings.HasSuffix(string(b[from:]), "]") {
		return b[:from+i]
	}
	return b
}

// isLabel reports whether a value is valid in front of the dot of a domain.
func isLabel(value []byte) bool {
	for _, c := range value {
		if c-'0' >= 10 && c|0x20-'a' >= 26 && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return len(value) > 0 && value[0] != '.'
}

// oneSlash takes all but one of the slashes off that a path begins with: a path
// that begins with two is another host.
func oneSlash(b []byte, start int) []byte {
	n := 0
	for start+n+1 < len(b) && b[start+n+1] == '/' {
		n++
	}
	return append(b[:start+1], b[start+1+n:]...)
}

// encode percent-encodes what the value that begins at from holds and no URL has
// in that place.
func encode(b []byte, from int, how role) []byte {
	clean := true
	for _, c := range b[from:] {
		clean = clean && !encoded(c, how)
	}
	if clean {
		return b
	}
	const upper = "0123456789ABCDEF"
	value := string(b[from:])
	b = b[:from]
	for i := range len(value) {
		if c := value[i]; encoded(c, how) {
			b = append(b, '%', upper[c>>4], upper[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

func encoded(c byte, how role) bool {
	if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
		return true
	}
	switch how {
	case inPath:
		return c == '?'
	case inQuery:
		return strings.IndexByte("%&+=;", c) >= 0
	}
	return false
}
