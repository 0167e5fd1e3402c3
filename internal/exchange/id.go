package exchange

import (
	"crypto/rand"
	"encoding/binary"
)

// requestID identifies one exchange: the process by 64 random bits, the
// connection by its serial, the request by its place on the connection.
type requestID struct {
	request uint32
	text    [idSize]byte
	made    bool
	foreign string // the id that a trusted peer gave, "" for our own
}

const idSize = 26

// process is what sets the ids of this process apart from those of all others.
var process = func() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return binary.BigEndian.Uint64(b[:])
}()

// alphabet is Crockford's base 32: no letters that look like digits.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// MaxID is the length of the longest request id, in bytes.
const MaxID = 128

// AdoptID makes id the request id, which a trusted peer has sent. It does nothing if the id
// is empty, longer than MaxID, or has characters other than letters, digits and -._~:/+=@,
// which need no escapes anywhere. The view must live as long as the exchange.
func (ex *Exchange) AdoptID(id string) {
	if len(id) == 0 || len(id) > MaxID {
		return
	}
	for i := range len(id) {
		if !inID[id[i]] {
			return
		}
	}
	ex.id.foreign = id
}

// inID are the characters of an id that is adopted.
var inID = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/+=@" {
		t[c] = true
	}
	return t
}()

// AdoptedID returns the request id that a trusted peer gave, "" if it is our own,
// which IDOf makes of the Number.
func (ex *Exchange) AdoptedID() string { return ex.id.foreign }

// ID returns the request id: that of a trusted peer, or else 26 characters, unique in
// practice across processes and machines. It is no secret and not hard to guess. The
// view dies with the exchange.
func (ex *Exchange) ID() string {
	r := &ex.id
	if r.foreign != "" {
		return r.foreign
	}
	if !r.made {
		writeID(&r.text, ex.Number())
		r.made = true
	}
	return view(r.text[:])
}

// Number returns a number that identifies the exchange in this process; IDOf makes its
// request id, if none was adopted.
func (ex *Exchange) Number() uint64 {
	return ex.Conn.Serial<<24 | uint64(ex.id.request)&0xffffff
}

// IDOf returns the request id of the exchange with this number that has adopted none.
func IDOf(number uint64) string {
	var text [idSize]byte
	writeID(&text, number)
	return string(text[:])
}

// writeID writes 128 bits, five at a time, from the low end.
func writeID(text *[idSize]byte, lo uint64) {
	hi := process
	for i := idSize - 1; i >= 0; i-- {
		text[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
}
