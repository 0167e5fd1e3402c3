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

// ID returns the request id: 26 characters, unique in practice across
// processes and machines. It is no secret and not hard to guess. The view dies
// with the exchange.
func (ex *Exchange) ID() string {
	r := &ex.id
	if !r.made {
		writeID(&r.text, ex.Number())
		r.made = true
	}
	return view(r.text[:])
}

// Number returns what tells this exchange from others of this process; IDOf makes
// the request id of it.
func (ex *Exchange) Number() uint64 {
	return ex.Conn.Serial<<24 | uint64(ex.id.request)&0xffffff
}

// IDOf returns the request id of the exchange with this number.
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
