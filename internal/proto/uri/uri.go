// Package uri holds the one form in which a path is matched and sent.
//
// A client can write one path in many ways: /a/b, /a//b, /a/./b, /%61/b. Were
// they matched as they come, a rule for /a would miss some of them; were they
// matched in one form and sent in another, a server could read what no rule has
// seen. So AppendNormal brings a path to its one form before it is matched, and
// that form is what is sent.
//
// The rule, for a path that starts with "/":
//
//  1. A percent sign and two hexadecimal digits encode a byte. Unreserved
//     characters (letters, digits, "-", ".", "_", "~") are decoded; every other
//     encoding stays, with capital digits (RFC 3986, sections 2.3 and 6.2.2).
//     So %2F and %5C stay as they are and never separate segments, and %252E
//     stays %252E: nothing is decoded twice.
//  2. Characters that a path cannot hold and that some clients send all the
//     same ( " < > [ ] ^ ` { | } ) are encoded.
//  3. Empty segments are left out: "//" is "/".
//  4. "." segments are removed and ".." removes the segment before it, also
//     when they were written with %2E. ".." at the root stays at the root, as
//     RFC 3986, section 5.2.4 has it: nothing is above it, so nothing is
//     gained by refusing.
//  5. A path that ends in "/", "." or ".." ends in "/" afterwards.
//
// Refused, since two readers would not agree on them: a path without "/" in
// front, a backslash, "?" and "#", blanks, control characters, bytes that are
// not ASCII, a percent sign without two digits, an encoded control character
// (%00, %1F, %7F) but for %09, %0A and %0D, which stay encoded, and a "." or ".." segment
// with parameters ("/..;/", which some servers read as "/../").
//
// Octets that are not ASCII (/café in UTF-8) are encoded by AppendASCII, which fronts
// call for the path and the query before anything looks at them.
//
// The package does not look at hosts or schemes.
package uri

// Error says why a path is refused.
type Error uint8

// The errors.
const (
	NoSlash Error = iota + 1
	BadByte
	BadEncoding
	EncodedControl
	DotParameter
)

// Error returns what is wrong with the path.
func (e Error) Error() string {
	switch e {
	case NoSlash:
		return "the path does not begin with /"
	case BadByte:
		return "the path contains an invalid character"
	case BadEncoding:
		return "the path has a % without two hexadecimal digits"
	case EncodedControl:
		return "the path contains an encoded control character, such as %00"
	}
	return "the path has a dot segment with parameters"
}

// Classes of bytes. A dot and a slash matter behind a slash, odd bytes always.
const (
	slash = 1 << iota
	dot
	odd // makes AppendNormal look at a path byte by byte
	raw // is sent by clients and encoded here
	bad
	free // unreserved (RFC 3986, section 2.3)
)

var class = classes()

func classes() (t [256]uint8) {
	for c := range 256 {
		switch b := byte(c); {
		case b <= ' ', b >= 0x7f, b == '\\', b == '?', b == '#':
			t[c] = odd | bad
		case '0' <= b && b <= '9', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b == '-', b == '_', b == '~':
			t[c] = free
		}
	}
	for _, c := range []byte("\"<>[]^`{|}") {
		t[c] = odd | raw
	}
	t['/'], t['.'], t['%'] = slash, dot|free, odd
	return t
}

// Normal reports whether a path is in its one form and AppendNormal would
// change nothing. It may say false of a path that is: one with an encoding, or
// with a segment that begins with a dot.
func Normal(path string) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	for i := 0; i < len(path); i++ {
		c := class[path[i]]
		if c&(odd|slash) == 0 {
			continue
		}
		if c&odd != 0 || i+1 < len(path) && class[path[i+1]]&(slash|dot) != 0 {
			return false
		}
	}
	return true
}

// AppendNormal appends the one form of a path to dst. The error is an Error; dst
// then holds a part of the path and is of no use.
func AppendNormal(dst []byte, path string) ([]byte, error) {
	if len(path) == 0 || path[0] != '/' {
		return dst, NoSlash
	}
	root := len(dst)
	for i := 0; i < len(path); {
		start := len(dst)
		dst = append(dst, '/')
		var err Error
		if dst, i, err = appendSegment(dst, path, i+1); err != 0 {
			return dst, err
		}
		switch kindOf(dst[start+1:]) {
		case ordinary:
			continue
		case nothing:
			dst = dst[:start]
		case parent:
			dst = dst[:lastSlash(dst[root:start])+root]
		case parameters:
			return dst, DotParameter
		}
		if i == len(path) {
			dst = append(dst, '/')
		}
	}
	return dst, nil
}

// appendSegment appends the segment of path that begins at i and returns where
// it ends.
func appendSegment(dst []byte, path string, i int) ([]byte, int, Error) {
	for ; i < len(path) && path[i] != '/'; i++ {
		c := path[i]
		switch k := class[c]; {
		case k&odd == 0:
			dst = append(dst, c)
		case k&bad != 0:
			return dst, i, BadByte
		case k&raw != 0:
			dst = appendEncoded(dst, c)
		default:
			if i+2 >= len(path) {
				return dst, i, BadEncoding
			}
			hi, lo := unhex(path[i+1]), unhex(path[i+2])
			if hi|lo > 15 {
				return dst, i, BadEncoding
			}
			i += 2
			switch c = hi<<4 | lo; {
			case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
				return dst, i, EncodedControl
			case class[c]&free != 0:
				dst = append(dst, c)
			default:
				dst = appendEncoded(dst, c)
			}
		}
	}
	return dst, i, 0
}

// kind is what a segment means.
type kind uint8

const (
	ordinary   kind = iota
	nothing         // empty or "."
	parent          // ".."
	parameters      // "." or ".." with parameters
)

func kindOf(segment []byte) kind {
	if len(segment) == 0 {
		return nothing
	}
	if segment[0] != '.' {
		return ordinary
	}
	dots := 1
	if len(segment) > 1 && segment[1] == '.' {
		dots = 2
	}
	switch {
	case len(segment) > dots && segment[dots] == ';':
		return parameters
	case len(segment) > dots:
		return ordinary
	case dots == 2:
		return parent
	}
	return nothing
}

// lastSlash returns the index of the last slash in b, 0 if there is none.
func lastSlash(b []byte) int {
	i := len(b) - 1
	for i > 0 && b[i] != '/' {
		i--
	}
	return max(i, 0)
}

// AppendASCII appends a path or a query with every octet that is not ASCII
// percent-encoded. The rest stays as it is.
func AppendASCII(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x80 {
			dst = append(dst, s[i])
		} else {
			dst = appendEncoded(dst, s[i])
		}
	}
	return dst
}

func appendEncoded(dst []byte, c byte) []byte {
	const upper = "0123456789ABCDEF"
	return append(dst, '%', upper[c>>4], upper[c&15])
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

// Below reports whether path lies at or below prefix, by whole segments: /api
// has /api, /api/ and /api/x below it, not /apix. A prefix does not end in a
// slash; "" has every path below it.
func Below(path, prefix string) bool {
	n := len(prefix)
	return len(path) >= n && path[:n] == prefix && (len(path) == n || path[n] == '/')
}
