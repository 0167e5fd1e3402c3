package qpack

import "headgate/internal/proto/prefixed"

// AppendPrefix appends the prefix of a section (RFC 9204, section 4.5.1).
func AppendPrefix(b []byte) []byte { return append(b, 0, 0) }

// AppendIndexed appends a field that is in the static table (RFC 9204, section
// 4.5.2).
func AppendIndexed(b []byte, index int) []byte {
	return prefixed.AppendInteger(b, 0xc0, 6, uint64(index))
}

// AppendNamed appends a field whose name is in the static table (RFC 9204, section
// 4.5.4). One that is secret is never to be indexed.
func AppendNamed(b []byte, index int, value string, secret bool) []byte {
	high := byte(0x50)
	if secret {
		high |= 0x20
	}
	b = prefixed.AppendInteger(b, high, 4, uint64(index))
	return prefixed.AppendString(b, value)
}

// AppendLiteral appends a field with its own name, which is made lower case (RFC
// 9204, section 4.5.6; RFC 9114, section 4.2).
func AppendLiteral(b []byte, name, value string) []byte {
	b = prefixed.AppendInteger(b, 0x20, 3, uint64(len(name)))
	b = prefixed.AppendLower(b, name)
	return prefixed.AppendString(b, value)
}

// Index returns the place of a name in the static table, the first of several, and
// whether it is there.
func Index(name string) (int, bool) {
	for i := range table {
		if table[i].name == name {
			return i, true
		}
	}
	return 0, false
}

// IndexField returns the place of a field in the static table, and whether it is
// there.
func IndexField(name, value string) (int, bool) {
	for i := range table {
		if table[i].name == name && table[i].value == value {
			return i, true
		}
	}
	return 0, false
}
