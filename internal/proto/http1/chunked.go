package http1

import "headgate/internal/proto/header"

// Bounds of what a chunked body holds beside data. Extensions mean nothing to
// this proxy and are dropped.
const (
	maxChunkLine       = 256      // bytes of extensions in one line
	maxChunkExtensions = 16 << 10 // bytes of extensions in one body
	maxChunkDigits     = 16       // leading zeros included
)

// Decoder removes the chunked coding from a body (RFC 9112, section 7.1) as it
// arrives, in pieces of any size. It is passed the bytes as they arrive and
// points at the runs of data in them; it retains nothing and copies nothing
// except trailers. Reset prepares it for a body.
type Decoder struct {
	// Trailers contains the trailer fields once Done is true, without those
	// that are not allowed in trailers. They are valid until Reset.
	Trailers header.List

	limits     *Limits
	left       int64 // bytes of the chunk that have not been seen
	size       uint64
	digits     int
	line       int // bytes of extensions in this line
	extensions int // bytes of extensions in earlier lines
	state      state
	failed     Error
	section    []byte // the trailer section
	from       int    // the start of its last line
}

// state is what a Decoder expects next.
type state uint8

const (
	atSize      state = iota // the size's digits
	atExtension              // ";" behind white space
	atExtName                // a name, or white space before it
	inExtName
	afterExtName // "=" or ";" behind white space
	atExtValue   // a value, or white space before it
	inExtValue
	inQuoted
	inQuotedPair
	afterQuoted // what may follow a value
	atSizeLF
	inData
	atDataCR
	atDataLF
	inTrailers
	finished
)

// Reset readies the decoder for a new body. lim bounds the trailer section; it
// is kept.
func (d *Decoder) Reset(lim *Limits) {
	section := d.section[:0]
	fields := d.Trailers
	fields.Reset()
	*d = Decoder{Trailers: fields, limits: lim, section: section}
}

// Done reports whether the body and its trailers have ended.
func (d *Decoder) Done() bool { return d.state == finished }

// Left returns how many bytes of data the current chunk still has. While it is
// more than 0 the next bytes of the connection are only data, and may bypass the
// decoder; Skip passes it their number.
func (d *Decoder) Left() int64 { return d.left }

// Skip counts n bytes of data, at most Left, as seen.
func (d *Decoder) Skip(n int64) {
	d.left -= n
	if d.left == 0 && d.state == inData {
		d.state = atDataCR
	}
}

// Next looks at src, the next bytes of the body, until the end of one run of
// data. It returns the run, a part of src that is empty if src holds none, and
// how many bytes of src it has used. Bytes behind the end of the body are not
// used. The error is an Error, and stays.
func (d *Decoder) Next(src []byte) (data []byte, n int, err error) {
	for n < len(src) && d.state != finished && d.failed == none {
		if d.state == inData {
			run := src[n:]
			if int64(len(run)) > d.left {
				run = run[:d.left]
			}
			d.Skip(int64(len(run)))
			return run, n + len(run), nil
		}
		if d.state == inTrailers {
			n += d.trailer(src[n:])
			continue
		}
		if d.failed = d.step(src[n]); d.failed == none {
			n++
		}
	}
	if d.failed != none {
		return nil, n, d.failed
	}
	return nil, n, nil
}

// Decode copies the data in src to dst until one of them is used up or the body
// ends. dst may be src, or start before it in the same memory.
func (d *Decoder) Decode(dst, src []byte) (nDst, nSrc int, err error) {
	for nSrc < len(src) && (nDst < len(dst) || d.state != inData) && d.state != finished {
		data, n, err := d.Next(src[nSrc:])
		copied := copy(dst[nDst:], data)
		if over := len(data) - copied; over > 0 {
			d.left, d.state = d.left+int64(over), inData
			n -= over
		}
		nDst += copied
		nSrc += n
		if err != nil {
			return nDst, nSrc, err
		}
	}
	return nDst, nSrc, nil
}

// step looks at one byte that is neither data nor of the trailer section.
func (d *Decoder) step(c byte) Error {
	switch d.state {
	case atSize:
		return d.sizeByte(c)
	case atSizeLF:
		if c != '\n' {
			return BadChunkLineEnd
		}
		d.beginChunk()
		return none
	case atDataCR:
		if c != '\r' {
			return BadChunkEnd
		}
		d.state = atDataLF
		return none
	case atDataLF:
		if c != '\n' {
			return BadChunkEnd
		}
		d.state, d.size, d.digits = atSize, 0, 0
		return none
	}
	if d.line++; d.line > maxChunkLine {
		return ChunkLineTooLong
	}
	if d.extensions+d.line > maxChunkExtensions {
		return ChunkExtensionsTooLong
	}
	return d.extensionByte(c)
}

// beginChunk follows the line with a chunk's size.
func (d *Decoder) beginChunk() {
	d.extensions += d.line
	d.line = 0
	d.left = int64(d.size)
	d.state = inData
	if d.left == 0 {
		d.state = inTrailers
	}
}
