package header

import "strings"

// ListsTag reports whether the fields of an ID, If-Match or If-None-Match, list an entity tag,
// or are "*" (RFC 9110, sections 13.1.1 and 13.1.2). Strong comparison needs two strong tags,
// weak comparison ignores W/ (RFC 9110, section 8.8.3.2). An empty tag matches only "*". Tags
// without quotes, which some servers send, are compared as they are.
func (l *List) ListsTag(id ID, tag string, strong bool) bool {
	for _, f := range l.All() {
		if f.ID != id {
			continue
		}
		if TrimOWS(f.Value) == "*" {
			return true
		}
		for rest := f.Value; rest != "" && tag != ""; {
			var one string
			if one, rest = cutTag(rest); one != "" && sameTag(one, tag, strong) {
				return true
			}
		}
	}
	return false
}

func sameTag(a, b string, strong bool) bool {
	if strong {
		return a == b && !strings.HasPrefix(a, "W/")
	}
	return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/")
}

// cutTag returns the first tag of a list, which may contain commas, and the rest.
func cutTag(s string) (tag, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return TrimOWS(s[:i]), s[i+1:]
		}
	}
	return TrimOWS(s), ""
}
