// Package prefixed writes the integers and names that HPACK (RFC 7541) and QPACK
// (RFC 9204) have in common. It reads nothing: each of the two has its own reader.
package prefixed

// AppendInteger appends an integer with a prefix of n bits (RFC 7541, section
// 5.1); high are the bits before it.
func AppendInteger(b []byte, high byte, n uint, v uint64) []byte {
	limit := uint64(1)<<n - 1
	if v < limit {
		return append(b, high|byte(v))
	}
	b = append(b, high|byte(limit))
	for v -= limit; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// AppendString appends a string without Huffman code (RFC 7541, section 5.2).
func AppendString[T string | []byte](b []byte, text T) []byte {
	b = AppendInteger(b, 0, 7, uint64(len(text)))
	return append(b, text...)
}

// AppendLower appends the bytes of a field name, capitals made small, as HTTP/2
// and HTTP/3 want names. Its length comes before it, by AppendInteger.
func AppendLower(b []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}
