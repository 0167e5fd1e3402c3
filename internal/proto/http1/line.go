package http1

import "encoding/binary"

// skipEmptyLine skips one CRLF before the request line (RFC 9112, section 2.2).
func skipEmptyLine(b []byte) (int, Error) {
	switch {
	case len(b) == 0:
		return 0, more
	case b[0] == '\n':
		return 0, BareLF
	case b[0] != '\r':
		return 0, none
	case len(b) == 1:
		return 0, more
	case b[1] != '\n':
		return 0, BareCR
	case len(b) == 2:
		return 2, more
	case b[2] == '\r' || b[2] == '\n':
		return 2, EmptyLines
	}
	return 2, none
}

// parseMethod reads the method and the space behind it.
func parseMethod(b []byte, pos int, req *RequestHead) (int, Error) {
	if len(b)-pos >= 4 && binary.LittleEndian.Uint32(b[pos:]) == 'G'|'E'<<8|'T'<<16|' '<<24 {
		req.Method, req.MethodID = "GET", Get
		return pos + 4, none
	}
	start := pos
	for pos < len(b) && class[b[pos]]&tchar != 0 {
		pos++
	}
	switch {
	case pos-start > maxMethod:
		return pos, MethodTooLong
	case pos == len(b):
		return pos, more
	case pos == start || b[pos] != ' ':
		return pos, badLineEnd(b, pos, BadMethod)
	}
	name := view(b, start, pos)
	if req.MethodID = lookupMethod(name); req.MethodID != OtherMethod {
		name = req.MethodID.String()
	}
	req.Method = name
	return pos + 1, none
}

// parseVersion reads the protocol version and the end of its line (RFC 9112,
// section 2.3).
func parseVersion(b []byte, pos int, minor *uint8) (int, Error) {
	if len(b)-pos < len("HTTP/1.1\r\n") {
		return pos, partialVersion(b[pos:])
	}
	if e := version8(b[pos:pos+8], minor); e != none {
		return pos, e
	}
	pos += 8
	if b[pos] == '\r' && b[pos+1] == '\n' {
		return pos + 2, none
	}
	return pos, badVersionEnd(b, pos)
}

// version8 reads the eight bytes of a version.
func version8(b []byte, minor *uint8) Error {
	const prefix = 'H' | 'T'<<8 | 'T'<<16 | 'P'<<24 | '/'<<32 | '1'<<40 | '.'<<48
	switch v := binary.LittleEndian.Uint64(b); {
	case v == prefix|'1'<<56:
		*minor = 1
		return none
	case v == prefix|'0'<<56:
		*minor = 0
		return none
	}
	switch {
	case string(b[:5]) != "HTTP/" || b[6] != '.' || class[b[5]]&class[b[7]]&digit == 0 || b[5] == '0':
		return BadVersion
	case b[5] != '1':
		return VersionUnsupported
	}
	*minor = 1 // a later one is read as the last that is known (RFC 9110, section 2.5)
	return none
}

// badVersionEnd names what follows a version on its line, which is not CRLF.
func badVersionEnd(b []byte, pos int) Error {
	switch c := b[pos]; {
	case c == ' ' || c == '\t':
		return BadRequestLine
	case class[c]&digit != 0:
		return BadVersion
	}
	return badLineEnd(b, pos, BadVersion)
}

// partialVersion judges the rest of a first line of which something is missing.
func partialVersion(b []byte) Error {
	const like = "HTTP/1.1"
	if len(b) > len(like) {
		b = b[:len(like)+1]
	}
	for i, c := range b {
		switch {
		case i == len(like) && c != '\r':
			return badVersionEnd(b, i)
		case i == 5 || i == 7:
			if class[c]&digit == 0 {
				return badLineEnd(b, i, BadVersion)
			}
		case i < len(like) && c != like[i]:
			return badLineEnd(b, i, BadVersion)
		}
	}
	if len(b) >= len(like) {
		var minor uint8
		if e := version8(b, &minor); e != none {
			return e
		}
	}
	return more
}
