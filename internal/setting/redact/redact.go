// Package redact removes the values of query parameters from what is logged: tokens,
// keys and addresses in URLs.
package redact

import "strings"

// mask replaces a value.
const mask = "REDACTED"

// Parameters are the names of query parameters whose values are removed. Nil removes
// nothing. It is immutable.
type Parameters struct {
	exact    map[string]bool // in lower case
	prefixes []string
}

// New returns the parameters with these names, in any case. A name may end in *.
func New(names []string) *Parameters {
	if len(names) == 0 {
		return nil
	}
	p := &Parameters{exact: map[string]bool{}}
	for _, name := range names {
		name = strings.ToLower(name)
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.exact[name] = true
		}
	}
	return p
}

// has reports whether a name, as written in a query, is one of the parameters. Names
// are compared decoded, as servers read them.
func (p *Parameters) has(name string) bool {
	var buf [64]byte
	plain := appendPlain(buf[:0], name)
	if p.exact[string(plain)] {
		return true
	}
	for _, prefix := range p.prefixes {
		if len(plain) >= len(prefix) && string(plain[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// appendPlain appends a name decoded and in lower case.
func appendPlain(b []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(name) && digit(name[i+1]) >= 0 && digit(name[i+2]) >= 0:
			c = byte(digit(name[i+1])<<4 | digit(name[i+2]))
			i += 2
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}

// digit returns the value of a hexadecimal digit, -1 for what is none.
func digit(c byte) int {
	if c >= 'A' && c <= 'F' {
		c |= 0x20
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// Append appends a query, with its "?" or without, or a whole URL, with the values of
// the parameters replaced. It reports whether there was one; else nothing is appended.
func (p *Parameters) Append(b []byte, text string) ([]byte, bool) {
	if p == nil || strings.IndexByte(text, '=') < 0 {
		return b, false
	}
	query := strings.IndexByte(text, '?') + 1
	found, from := false, 0
	for at := query; at < len(text); {
		end := at
		for end < len(text) && text[end] != '&' && text[end] != ';' && text[end] != '#' {
			end++
		}
		if eq := strings.IndexByte(text[at:end], '='); eq >= 0 && at+eq+1 < end && p.has(text[at:at+eq]) {
			b = append(append(b, text[from:at+eq+1]...), mask...)
			found, from = true, end
		}
		at = end + 1
	}
	if !found {
		return b, false
	}
	return append(b, text[from:]...), true
}
