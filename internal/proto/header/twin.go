package header

// Servers that make variables of names (CGI, WSGI, PHP) read "X-User", "X_User" and
// "x.user" as one: whatever is neither letter nor digit is the same to them. A
// client that sends the second beside a first that we vouch for would forge it. The
// rule for such twins of a name is here and nowhere else.

// Twins reports whether a server that turns names into variables may confuse the
// two names: they differ only in case and in characters that are neither letters
// nor digits ("Remote-User", "remote_user"). A name is an alias of itself.
func Twins(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if alphanumeric(a[i]) != alphanumeric(b[i]) || alphanumeric(a[i]) && a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}

// Twin returns the well-known name that an unknown one reads as to such servers:
// for "X_Forwarded_For" it returns XForwardedFor. It returns Other for any other
// name.
func Twin(name string) ID {
	var buf [32]byte
	if len(name) > len(buf) {
		return Other
	}
	for i := range len(name) {
		buf[i] = name[i]
		if !alphanumeric(name[i]) {
			buf[i] = '-'
		}
	}
	return Lookup(string(buf[:len(name)]))
}

// HasTwins reports whether a name has a byte that other bytes can replace in
// an alias.
func HasTwins(name string) bool {
	for i := range len(name) {
		if !alphanumeric(name[i]) {
			return true
		}
	}
	return false
}

// Odd reports whether a name contains characters other than letters, digits and hyphens. An
// unknown name without them is not an alias of a known one.
func Odd(name string) bool {
	for i := range len(name) {
		if odd[name[i]] {
			return true
		}
	}
	return false
}

// odd has the bytes that make a name odd.
var odd = func() (t [256]bool) {
	for c := range t {
		t[c] = c != '-' && !alphanumeric(byte(c))
	}
	return t
}()

// DeleteTwins removes the fields that a server may confuse with those of this name,
// except those with the name itself, in any case.
func (l *List) DeleteTwins(name string) {
	for i := range l.All() {
		if f := &l.All()[i]; !f.Is(name) && Twins(f.Name, name) {
			l.DeleteFunc(func(f *Field) bool { return !f.Is(name) && Twins(f.Name, name) })
			return
		}
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
