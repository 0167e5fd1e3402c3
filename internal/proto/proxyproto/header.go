// Package proxyproto reads and writes the header of the PROXY protocol, versions
// 1 and 2: the line or block with which a proxy in front describes the
// connection that it forwards ("The PROXY protocol", HAProxy, 2020/03/05, cited
// here as PP).
//
// ReadHeader reads the header from a connection, not one byte more, and returns
// the connection with the addresses in it. The caller decides which peers to
// trust: an unknown peer can forge a header. Append writes a header.
//
// headgate has its own parser because the header has to be read from the socket
// exactly: the code that serves the connection afterwards waits on the
// descriptor itself, and a library that wraps the connection in a reader would
// prevent that.
package proxyproto

import (
	"errors"
	"net/netip"
)

// Header is the content of a header.
type Header struct {
	// Source is the client's address and Destination the one that it connected
	// to. They are not valid when the header describes no other connection:
	// LOCAL, UNKNOWN, and families without IP addresses.
	Source, Destination netip.AddrPort
}

// The errors of a header that is refused.
var (
	ErrMissing   = errors.New("the connection does not start with a PROXY header")
	ErrTruncated = errors.New("the PROXY header ends before it is whole")
	ErrLate      = errors.New("the PROXY header did not come in time")
	ErrInvalid   = errors.New("the PROXY header breaks a rule")
	ErrChecksum  = errors.New("the checksum of the PROXY header is wrong")
)

// signature is the start of a header of version 2 (PP, section 2.2).
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// How long the parts of a header are, in bytes.
const (
	shortest = len("PROXY UNKNOWN\r\n")
	longest1 = 107 // of version 1 (PP, section 2.1)
	fixed2   = 16  // of version 2 before what its length counts
)

// MaxLength is the longest header, in bytes: one of version 2 with all that its
// length can count. Only trusted peers are read this far, and for a few seconds.
const MaxLength = fixed2 + 0xffff

// need returns how many more bytes, after those in b, are part of the header for
// certain; 0 when it is whole.
func need(b []byte) (int, error) {
	n := min(len(b), len(signature))
	switch {
	case len(b) > 0 && string(b[:n]) == signature[:n]:
		return need2(b), nil
	case string(b[:min(len(b), len(prefix1))]) == prefix1[:min(len(b), len(prefix1))]:
		return need1(b)
	}
	return 0, ErrMissing
}

// Parse reads a complete header: b contains nothing else.
func Parse(b []byte) (Header, error) {
	switch n, err := need(b); {
	case err != nil:
		return Header{}, err
	case n > 0:
		return Header{}, ErrTruncated
	case b[0] == signature[0]:
		return parse2(b)
	}
	return parse1(b)
}
