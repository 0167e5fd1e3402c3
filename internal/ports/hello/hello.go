// Package hello parses the first message of a TLS client for the requested server name and
// the application protocols that it offers: the ClientHello with its extensions server_name
// and application_layer_protocol_negotiation (RFC 8446, section 4.1.2; RFC 6066, section 3;
// RFC 7301, section 3.1). Nothing is decrypted and nothing is sent; the bytes stay unchanged for the TLS
// server.
//
// Parse never waits: it gets the data that has arrived and reports whether that is enough.
// It is strict. An invalid message has no name, and is left to a TLS server to reject. With
// Encrypted Client Hello the name and the protocols are those of the outer message.
package hello

import "errors"

// The bounds of a message, in bytes. A record carries at most 16 KiB of plain text
// (RFC 8446, section 5.1); that of the message is crypto/tls's own.
const (
	maxRecord  = 16 << 10
	maxMessage = 64 << 10
)

// MaxSize limits the bytes that are parsed, including the heads of records. Valid messages
// are shorter; a client that sends more is not waited for.
const MaxSize = maxMessage + 16<<10

// ErrMore is what Parse returns when the message has not come whole.
var ErrMore = errors.New("the ClientHello has not come whole")

// ErrInvalid is what Parse returns of bytes that are no ClientHello.
var ErrInvalid = errors.New("no ClientHello")

// Hello is what a ClientHello requests.
type Hello struct {
	// Name is the server name in lower case, "" if there is none.
	Name string
	// Protocols are the application protocols that the client offers, its preferred first.
	Protocols []string
}

// Parse returns what a ClientHello requests. data starts with the first byte of the
// connection. With ErrMore it returns the minimum number of further bytes that it needs, so
// that a message in small pieces is not parsed again for each of them.
func Parse(data []byte) (h Hello, more int, err error) {
	message, more, err := message(data)
	if err != nil {
		return Hello{}, more, err
	}
	h, err = parse(message)
	return h, 0, err
}

func parse(message []byte) (Hello, error) {
	r := reader{message[messageHead:], true}
	r.skip(2)              // legacy_version
	r.skip(32)             // random
	r.sized(1, 0, 32)      // legacy_session_id
	r.sized(2, 2, 1<<16-2) // cipher_suites
	r.sized(1, 1, 255)     // legacy_compression_methods
	if !r.ok {
		return Hello{}, ErrInvalid
	}
	if len(r.b) == 0 {
		return Hello{}, nil // TLS 1.2 allows it to end here
	}
	extensions := reader{r.sized(2, 0, 1<<16-1), r.ok}
	if !r.ok || len(r.b) > 0 {
		return Hello{}, ErrInvalid
	}
	return extensions.hello()
}

// The types of records and messages.
const (
	recordHandshake  = 22
	recordHead       = 5
	messageHead      = 4
	typeClientHello  = 1
	extensionName    = 0
	extensionALPN    = 16
	nameTypeHostName = 0
)

// message returns the first handshake message, from as many records as
// necessary.
func message(data []byte) (joined []byte, more int, err error) {
	var copied bool
	for rest := data; ; {
		part, length, err := record(rest)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case joined == nil:
			joined = part // most often one record has it all
		case !copied:
			joined, copied = append(append(make([]byte, 0, 4*len(joined)), joined...), part...), true
		default:
			joined = append(joined, part...)
		}
		wanted := messageLength(joined)
		switch {
		case wanted > messageHead+maxMessage || len(joined) > 0 && joined[0] != typeClientHello:
			return nil, 0, ErrInvalid
		case wanted > 0 && len(joined) >= wanted:
			return joined[:wanted], 0, nil
		case length <= len(rest):
			rest = rest[length:]
		case len(data) >= MaxSize:
			return nil, 0, ErrInvalid
		default:
			return nil, max(wanted-len(joined), 1), ErrMore
		}
	}
}

// record returns the part that has arrived of the content of the record at the
// start of b, and the length of the whole record with its header.
func record(b []byte) (content []byte, length int, err error) {
	if len(b) > 0 && b[0] != recordHandshake || len(b) > 1 && b[1] != 3 {
		return nil, 0, ErrInvalid
	}
	if len(b) < recordHead {
		return nil, recordHead + 1, nil
	}
	n := int(b[3])<<8 + int(b[4])
	if n == 0 || n > maxRecord {
		return nil, 0, ErrInvalid
	}
	return b[recordHead:min(len(b), recordHead+n)], recordHead + n, nil
}

// messageLength returns how long a message is with its head, 0 while that is not
// known.
func messageLength(b []byte) int {
	if len(b) < messageHead {
		return 0
	}
	return messageHead + int(b[1])<<16 + int(b[2])<<8 + int(b[3])
}
