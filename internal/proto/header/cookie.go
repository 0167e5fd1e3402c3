package header

import "strings"

// CookieValue returns the value of the first cookie with this name, or "" (RFC
// 6265, section 5.4).
func (l *List) CookieValue(name string) string {
	if !l.Has(Cookie) {
		return ""
	}
	for i := range l.fields {
		if l.fields[i].ID != Cookie {
			continue
		}
		for rest := l.fields[i].Value; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, ";")
			if n, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && n == name {
				return value
			}
		}
	}
	return ""
}

// HasToken reports whether the fields of a well-known name, read as one list
// parted by commas, have a member (RFC 9110, section 5.6.1). Case makes no
// difference. A member with parameters is another one.
func (l *List) HasToken(id ID, token string) bool {
	if !l.Has(id) {
		return false
	}
	for i := range l.fields {
		if l.fields[i].ID != id {
			continue
		}
		for rest, more := l.fields[i].Value, true; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			if EqualFold(TrimOWS(member), token) {
				return true
			}
		}
	}
	return false
}

// VaryBy adds a field name to Vary, which tells caches that the response depends
// on that field of the request, unless it is listed already (RFC 9110, section
// 12.5.5).
func (l *List) VaryBy(name string) {
	if !l.HasToken(Vary, "*") && !l.HasToken(Vary, name) {
		l.Add(Vary, name)
	}
}
