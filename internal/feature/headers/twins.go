package headers

import "headgate/internal/header"

// Servers that make variables of names (CGI, WSGI, PHP) read "X-User" and "X_User"
// as one. A client that sends the second beside the field that a rule sets would
// forge it, so such twins of a rule's name are dropped.

// hasTwins reports whether a name has a byte that others may stand for.
func hasTwins(name string) bool {
	for i := range len(name) {
		if !alphanumeric(name[i]) {
			return true
		}
	}
	return false
}

// dropTwins removes the fields that a server may take for the one of this name.
func dropTwins(list *header.List, name string) {
	for _, f := range list.All() {
		if twins(f.Name, name) {
			list.DeleteFunc(func(f *header.Field) bool { return twins(f.Name, name) })
			return
		}
	}
}

// twins reports whether two names differ, and only in what is neither letter nor
// digit.
func twins(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	differ := false
	for i := range len(a) {
		if a[i] == b[i] {
			continue
		}
		if alphanumeric(a[i]) || alphanumeric(b[i]) {
			if alphanumeric(a[i]) != alphanumeric(b[i]) || a[i]|0x20 != b[i]|0x20 {
				return false
			}
			continue
		}
		differ = true
	}
	return differ
}

func alphanumeric(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 26 }
