// Package http1 is the message syntax of HTTP/1.0 and HTTP/1.1 (RFC 9112) for
// both sides of the proxy: requests from clients, responses from servers.
//
// It works on byte slices and does no I/O. [ParseRequest] and [ParseResponse]
// parse a head in place: what they return are views into the caller's buffer,
// which are valid as long as the bytes stay where they are. An incomplete
// head is not an error (n is 0); [Scanner] then reports, without reading a
// byte twice, when it is worth parsing again. [Decoder] removes the chunked
// coding from a body and the Append functions write what is sent.
//
// request.go and response.go put a head together: line.go and target.go read its
// first line, fields.go its fields, framing.go says where the body ends and
// connection.go what the connection is for. chunked.go, chunkline.go and trailer.go
// are the chunked coding.
//
// It accepts what RFC 9112 requires of senders, which is less than it allows
// recipients to accept: anything that two implementations are known to read
// differently is rejected, never repaired. Each rejection is an [Error] that
// names the rule. Nothing here allocates, except trailers.
package http1

// Limits bounds the head of a message. A field that is zero or negative means
// the default.
type Limits struct {
	// HeadSize is the largest head in bytes, with its first line and the empty
	// line that ends it. Default DefaultHeadSize.
	HeadSize int
	// Fields is the largest number of field lines. Default DefaultFields.
	Fields int
	// URISize is the longest request target in bytes. Default DefaultURISize.
	URISize int
	// StrictTarget refuses a request target with octets that are not ASCII. Without it
	// they are for the caller to percent-encode, see RequestHead.NonASCII.
	StrictTarget bool
}

// The bounds that hold where a limit is not set.
const (
	DefaultHeadSize = 32 << 10
	DefaultFields   = 200
	DefaultURISize  = 16 << 10
)

// maxMethod is the longest method that is passed on. The longest registered
// one has 17 letters.
const maxMethod = 32

func (l *Limits) headSize() int {
	if l.HeadSize > 0 {
		return l.HeadSize
	}
	return DefaultHeadSize
}

func (l *Limits) fields() int {
	if l.Fields > 0 {
		return l.Fields
	}
	return DefaultFields
}

func (l *Limits) uriSize() int {
	if l.URISize > 0 {
		return l.URISize
	}
	return DefaultURISize
}

// window returns the part of buf that a head may occupy, and whether a head
// that does not end in it is too large.
func (l *Limits) window(buf []byte) (b []byte, full bool) {
	if size := l.headSize(); len(buf) >= size {
		return buf[:size], true
	}
	return buf, false
}
