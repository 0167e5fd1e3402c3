package header

import "strings"

// TrimOWS removes optional white space from both ends of s (RFC 9110, section 5.6.3): spaces
// and tabs, and nothing else.
func TrimOWS(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// CutPair returns the name and the value of a cookie or a parameter, "name=value" with optional
// white space around it. found is false without a "=".
func CutPair(s string) (name, value string, found bool) {
	return strings.Cut(TrimOWS(s), "=")
}
