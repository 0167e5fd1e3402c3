package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"headgate/internal/proto/uri"
)

// CheckPath returns a problem of a path in the configuration (of a route, a base path, a
// prefix to add), and how to fix it; what is "" if there is none. The path must be
// canonical, the one form in which requests are matched.
func CheckPath(path string) (what, remedy string) {
	if path == "" || path[0] != '/' {
		return fmt.Sprintf("path %q does not begin with /", path), fmt.Sprintf("write %q", "/"+path)
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c == '?':
			return fmt.Sprintf("path %q contains a query", path), "remove the ? and what follows"
		case c == '#':
			return fmt.Sprintf("path %q contains a fragment", path), "remove the # and what follows"
		case c == '\\':
			return fmt.Sprintf("path %q contains a backslash", path), "write / between segments"
		case c < ' ' || c == 0x7f:
			return fmt.Sprintf("path %q contains a control character", path), "remove it"
		case c == ' ' || c > 0x7f:
			return fmt.Sprintf("path %q contains the character %q", path, firstRune(path[i:])), fmt.Sprintf("write %q", encodePath(path))
		}
	}
	canonical, err := uri.AppendNormal(nil, path)
	switch {
	case err == uri.BadEncoding:
		return fmt.Sprintf("path %q has a %% without two hexadecimal digits", path), "write %25 for a percent sign"
	case err != nil:
		return fmt.Sprintf("path %q is not valid in a request: %v", path, err), "remove it"
	case string(canonical) != path:
		return fmt.Sprintf("path %q is not in its canonical form", path), fmt.Sprintf("write %q", canonical)
	}
	return "", ""
}

// firstRune returns the first character of s.
func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// encodePath returns path with blanks and what is not ASCII percent-encoded.
func encodePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c == ' ' || c > 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// CheckFieldValue returns a problem of a header field's value, and how to fix it; what is
// "" if there is none (RFC 9110, section 5.5).
func CheckFieldValue(value string) (what, remedy string) {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Sprintf("the header value contains the control character 0x%02X", c), "remove it"
		}
	}
	if value != strings.Trim(value, " \t") {
		return "the header value begins or ends with whitespace", "remove it"
	}
	return "", ""
}
