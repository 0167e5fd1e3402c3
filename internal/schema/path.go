package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckPath tells what is wrong with a path that an operator writes (a route's,
// a base path, a prefix to add), and what mends it; what is "" when all is
// well. The path must be canonical, that is, in the one form in which requests
// are matched, so that what is written is what is meant.
func CheckPath(path string) (what, remedy string) {
	if path == "" || path[0] != '/' {
		return fmt.Sprintf("path %q does not begin with /", path), fmt.Sprintf("write %q", "/"+path)
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c == '?':
			return fmt.Sprintf("path %q holds a query", path), "take out the ? and what follows"
		case c == '#':
			return fmt.Sprintf("path %q holds a fragment", path), "take out the # and what follows"
		case c == '\\':
			return fmt.Sprintf("path %q holds a backslash", path), "write / between segments"
		case c < ' ' || c == 0x7f:
			return fmt.Sprintf("path %q holds a control character", path), "take it out"
		case c == ' ' || c > 0x7f:
			return fmt.Sprintf("path %q holds the character %q", path, firstRune(path[i:])), fmt.Sprintf("write %q", encodePath(path))
		}
	}
	canonical, ok := canonicalPath(path)
	if !ok {
		return fmt.Sprintf("path %q has a %% without two hexadecimal digits", path), "write %25 for a percent sign"
	}
	if strings.Contains(canonical, "%00") {
		return fmt.Sprintf("path %q holds %%00, which no request can have", path), "take it out"
	}
	if canonical != path {
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

// canonicalPath returns path with its percent-encodings in upper case and only
// where they are needed, doubled slashes merged and dot segments resolved, as
// requests are normalised before they are matched. It returns false when an
// encoding is broken.
func canonicalPath(path string) (string, bool) {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") && !strings.Contains(path, "%") {
		return path, true
	}
	decoded, ok := decodeUnreserved(path)
	if !ok {
		return "", false
	}
	var kept []string
	segments := strings.Split(decoded, "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "." || s == "" && !last:
		case s == "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/"), true
}

// decodeUnreserved decodes the percent-encodings of unreserved characters (RFC
// 3986, section 2.3) and brings the others into upper case.
func decodeUnreserved(path string) (string, bool) {
	if !strings.Contains(path, "%") {
		return path, true
	}
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		if i+2 >= len(path) {
			return "", false
		}
		hi, lo := unhex(path[i+1]), unhex(path[i+2])
		if hi > 15 || lo > 15 {
			return "", false
		}
		if c := hi<<4 | lo; unreserved(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upper[hi], upper[lo]})
		}
		i += 2
	}
	return b.String(), true
}

// unhex returns the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// unreserved reports whether c is an unreserved character of RFC 3986.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// CheckFieldValue tells what is wrong with a header field's value, and what
// mends it; what is "" when all is well (RFC 9110, section 5.5).
func CheckFieldValue(value string) (what, remedy string) {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Sprintf("the header value holds the control character 0x%02X", c), "take it out"
		}
	}
	if value != strings.Trim(value, " \t") {
		return "the header value begins or ends with a blank", "take it off"
	}
	return "", ""
}
