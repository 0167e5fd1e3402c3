package http1

import "math"

var hexDigits = hexValues()

func hexValues() (t [256]int8) {
	for c := range t {
		t[c] = -1
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = int8(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = int8(10 + i)
	}
	return t
}

// sizeByte looks at a byte of a chunk's size or at the one behind it.
func (d *Decoder) sizeByte(c byte) Error {
	if v := hexDigits[c]; v >= 0 {
		if d.digits++; d.digits > maxChunkDigits || d.size > math.MaxInt64>>4 {
			return ChunkSizeOverflow
		}
		d.size = d.size<<4 | uint64(v)
		return none
	}
	switch {
	case d.digits == 0:
		return BadChunkSize
	case c == '\r':
		d.state = atSizeLF
	case c == ';':
		d.line = 1
		d.state = atExtName
	case c == ' ' || c == '\t':
		d.line = 1
		d.state = atExtension
	case c == '\n':
		return BadChunkLineEnd
	default:
		return BadChunkSize
	}
	return none
}

// extensionByte looks at a byte of the extensions of a chunk (RFC 9112, section
// 7.1.1). White space is let through where the grammar has it (BWS), and nowhere
// else: not before the end of the line.
func (d *Decoder) extensionByte(c byte) Error {
	token := class[c]&tchar != 0
	space := c == ' ' || c == '\t'
	switch d.state {
	case atExtension, afterExtName:
		if c == '\r' {
			return BadChunkLineEnd
		}
		return d.endPart(c, d.state == afterExtName)
	case afterQuoted:
		return d.endPart(c, false)
	case inExtName, inExtValue:
		if !token {
			return d.endPart(c, d.state == inExtName)
		}
		return none
	case inQuoted, inQuotedPair:
		return d.quotedByte(c)
	}
	switch { // atExtName, atExtValue
	case token && d.state == atExtName:
		d.state = inExtName
	case token:
		d.state = inExtValue
	case c == '"' && d.state == atExtValue:
		d.state = inQuoted
	case !space:
		return badExtension(c)
	}
	return none
}

// endPart looks at a byte that ends the size, a name or a value.
func (d *Decoder) endPart(c byte, name bool) Error {
	switch {
	case c == '\r':
		d.state = atSizeLF
	case c == ';':
		d.state = atExtName
	case c == '=' && name:
		d.state = atExtValue
	case c != ' ' && c != '\t':
		return badExtension(c)
	case name:
		d.state = afterExtName
	default:
		d.state = atExtension
	}
	return none
}

// quotedByte looks at a byte of a quoted string (RFC 9110, section 5.6.4).
func (d *Decoder) quotedByte(c byte) Error {
	switch {
	case class[c]&control != 0:
		return badExtension(c)
	case d.state == inQuotedPair:
		d.state = inQuoted
	case c == '\\':
		d.state = inQuotedPair
	case c == '"':
		d.state = afterQuoted
	}
	return none
}

func badExtension(c byte) Error {
	if c == '\r' || c == '\n' {
		return BadChunkLineEnd
	}
	return BadChunkExtension
}
