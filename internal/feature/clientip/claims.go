package clientip

import "headgate/internal/proto/header"

// drop removes every field that claims who the client is or how it came, but
// for kept, the field of a CDN that came from that CDN; Other keeps none.
func drop(list *header.List, kept header.ID) {
	list.DeleteKnown(kept, &claiming, claimsUnknown)
}

// dropTwins removes the fields that a server may take for the one of this name:
// all of them but, when trusted is true, the field itself.
func dropTwins(list *header.List, name string, trusted bool) {
	list.DeleteTwins(name)
	if !trusted {
		list.DeleteFunc(func(f *header.Field) bool { return f.Is(name) })
	}
}

// owns reports whether a trailer must not have this name: it is a header about the client,
// or could be taken for the header that is used from trusted peers. b may be nil.
func (b *trust) owns(f *header.Field) bool {
	return claims(f) || b != nil && b.only.name != "" && header.Twins(f.Name, b.only.name)
}

// claims reports whether a field is such a claim: a well-known one, any other
// X-Forwarded field, or a name that a server which makes variables of names
// reads as one of them ("X_Forwarded_For").
func claims(f *header.Field) bool {
	if f.ID != header.Other {
		return claiming[f.ID]
	}
	return claimsUnknown(f)
}

// claimsUnknown is claims for a name that is not well known.
func claimsUnknown(f *header.Field) bool {
	if len(f.Name) < shortest {
		return false
	}
	switch f.Name[0] | 0x20 {
	case 'x':
		return forwarded(f.Name) || header.Odd(f.Name) && header.Twin(f.Name).ClaimsClient()
	case 'c', 'f', 't':
		return header.Odd(f.Name) && header.Twin(f.Name).ClaimsClient()
	}
	return false
}

// claiming is header.ID.ClaimsClient as a table.
var claiming = func() (t [256]bool) {
	for id := range t {
		t[id] = header.ID(id).ClaimsClient()
	}
	return t
}()

// The shortest claim that is not well known is a twin of X-Host.
const shortest = len("x_host")

// forwarded reports whether a name begins as X-Forwarded does, in any case and
// with any character in the place of the hyphen.
func forwarded(name string) bool {
	const begin, rest = "x?", "forwarded"
	if len(name) < len(begin)+len(rest) || !header.EqualFold(name[len(begin):len(begin)+len(rest)], rest) {
		return false
	}
	return !alphanumeric(name[1]) && (len(name) == len(begin)+len(rest) || !alphanumeric(name[len(begin)+len(rest)]))
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
