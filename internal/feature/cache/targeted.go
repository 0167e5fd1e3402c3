package cache

import (
	"strings"

	"headgate/internal/proto/header"
)

// targeted reads CDN-Cache-Control, a dictionary of structured fields that
// replaces Cache-Control and Expires if it is meant for headgate (RFC 9213). It
// returns false when there is none, or when it is empty or does not conform to
// RFC 9651: then it counts as absent.
func (d *directives) targeted(list *header.List) bool {
	if !list.Has(header.CDNCacheControl) {
		return false
	}
	var out directives
	members := 0
	for _, f := range list.All() {
		if f.ID != header.CDNCacheControl {
			continue
		}
		p := dictionary{rest: strings.Trim(f.Value, " ")}
		for p.rest != "" {
			if !p.member() || !out.addMember(&p) {
				return false
			}
			members++
		}
	}
	if members == 0 {
		return false
	}
	*d = out
	return true
}

// directiveKeys are the keys that are known. Servers write them in any case, as in
// Cache-Control, although RFC 9651 has lower-case letters only: no other reading is possible.
var directiveKeys = [...]string{
	"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "no-store", "no-cache", "private", "public",
	"must-revalidate", "proxy-revalidate", "must-understand",
}

// addMember notes a member of the dictionary. It reports false when its value is
// not of the kind that the directive has.
func (d *directives) addMember(p *dictionary) bool {
	switch p.key {
	case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
		if p.kind != integer {
			return false
		}
		d.forget(p.key)
	case "no-store", "must-revalidate", "proxy-revalidate", "must-understand", "public":
		if p.kind == no {
			return true
		}
		if p.kind != yes {
			return false
		}
	case "no-cache", "private":
		if p.kind == no {
			return true
		}
		if p.kind != yes && p.kind != text {
			return false
		}
	}
	d.add(p.key, p.value, p.kind == integer || p.kind == text, p.kind == text, true)
	return true
}

// forget lets the last of several members with one key count, as in every
// dictionary of structured fields.
func (d *directives) forget(key string) {
	switch key {
	case "max-age":
		d.has &^= maxAge
	case "s-maxage":
		d.has &^= sMaxage
	case "stale-while-revalidate":
		d.has &^= whileRevalidate
	case "stale-if-error":
		d.has &^= ifError
	}
}

// kind is what a value of a structured field is.
type kind uint8

const (
	integer kind = iota + 1
	decimal
	text
	word
	bytesItem
	yes
	no
	innerList
)

// dictionary reads a dictionary member by member (RFC 9651, section 4.2.2).
type dictionary struct {
	rest  string
	key   string
	kind  kind
	value string
}

// member reads the next member and the comma behind it.
func (p *dictionary) member() bool {
	if p.key = p.takeKey(); p.key == "" {
		return false
	}
	p.kind, p.value = yes, ""
	if p.accept('=') && !p.takeValue() {
		return false
	}
	if !p.parameters() {
		return false
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return true
	}
	if !p.accept(',') {
		return false
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	return p.rest != "" // a comma at the end is an error
}

func (p *dictionary) accept(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// span cuts off the longest beginning that is made of bytes in f.
func (p *dictionary) span(f func(c byte) bool) string {
	i := 0
	for i < len(p.rest) && f(p.rest[i]) {
		i++
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}

func (p *dictionary) takeKey() string {
	if p.rest == "" || !(isLower(p.rest[0]|0x20) || p.rest[0] == '*') {
		return ""
	}
	key := p.span(func(c byte) bool {
		return isLower(c|0x20) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '*'
	})
	for _, known := range directiveKeys {
		if header.EqualFold(key, known) {
			return known
		}
	}
	return key
}

// takeValue reads an item or an inner list.
func (p *dictionary) takeValue() bool {
	if !p.accept('(') {
		return p.item()
	}
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.accept(')') {
			p.kind, p.value = innerList, ""
			return true
		}
		if !p.item() || !p.parameters() || p.rest == "" || p.rest[0] != ' ' && p.rest[0] != ')' {
			return false
		}
	}
}

// item reads a bare item (RFC 9651, section 4.2.3.1).
func (p *dictionary) item() bool {
	if p.rest == "" {
		return false
	}
	switch c := p.rest[0]; {
	case c == '-' || isDigit(c):
		return p.number()
	case c == '"':
		return p.quoted()
	case c == '?':
		return p.boolean()
	case c == ':':
		return p.octets()
	case c == '@':
		p.accept('@')
		ok := p.number() && p.kind == integer
		p.kind = bytesItem
		return ok
	case isLower(c | 0x20), c == '*':
		p.kind = word
		p.value = p.span(func(c byte) bool { return tokenByte[c] || c == ':' || c == '/' })
		return true
	}
	return false
}

func (p *dictionary) number() bool {
	negative := p.accept('-')
	p.kind, p.value = integer, p.span(isDigit)
	if p.value == "" || len(p.value) > 15 {
		return false
	}
	if p.accept('.') {
		fraction := p.span(isDigit)
		p.kind = decimal
		return fraction != "" && len(fraction) <= 3 && len(p.value) <= 12
	}
	if negative {
		p.value = "-" // no number of seconds
	}
	return true
}

func (p *dictionary) quoted() bool {
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return false
			}
		case c == '"':
			p.kind, p.value, p.rest = text, p.rest[1:i], p.rest[i+1:]
			return true
		case c < ' ' || c > '~':
			return false
		}
	}
	return false
}

func (p *dictionary) boolean() bool {
	p.accept('?')
	p.value = ""
	switch {
	case p.accept('1'):
		p.kind = yes
	case p.accept('0'):
		p.kind = no
	default:
		return false
	}
	return true
}

func (p *dictionary) octets() bool {
	p.accept(':')
	p.kind, p.value = bytesItem, ""
	p.span(func(c byte) bool { return isLower(c|0x20) || isDigit(c) || c == '+' || c == '/' || c == '=' })
	return p.accept(':')
}

// parameters reads over the parameters of a value.
func (p *dictionary) parameters() bool {
	kind, value := p.kind, p.value
	for p.accept(';') {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.takeKey() == "" || p.accept('=') && !p.item() {
			return false
		}
	}
	p.kind, p.value = kind, value
	return true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
