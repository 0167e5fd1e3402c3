// Package generations lets two processes share one socket of QUIC while a new one
// replaces an old one.
//
// Each process puts its generation into the connection IDs that it issues (IDs). The
// newest process reads the socket (Conn); datagrams of connections of the older process
// go to that over a pair of sockets, with their source. The older process sends on its
// own duplicate of the socket. The datagrams of a handshake that the older process has
// begun bear an ID that the client chose: those are known by a list.
//
// When the newest process ends or closes its socket, the older one reads the socket
// again.
package generations

import (
	"crypto/rand"

	"github.com/quic-go/quic-go"
)

// idLength is the length of the connection IDs, in bytes: the generation, random bytes,
// and a checksum of both. quic-go draws IDs at random and does not look whether another
// connection has the same, so there are enough random bytes for that not to happen.
const idLength = 12

// IDs issues the connection IDs of a process of a generation. It is a
// quic.ConnectionIDGenerator.
type IDs struct{ Generation byte }

// GenerateConnectionID returns a new ID.
func (g IDs) GenerateConnectionID() (quic.ConnectionID, error) {
	var b [idLength]byte
	rand.Read(b[1:]) // never fails: crypto/rand ends the process instead
	b[0] = g.Generation
	b[idLength-1] = checksum(b[:idLength-1])
	return quic.ConnectionIDFromBytes(b[:]), nil
}

// ConnectionIDLen returns the length of the IDs.
func (IDs) ConnectionIDLen() int { return idLength }

// generationOf returns the generation in a connection ID. It reports false for one that
// no headgate has issued; one ID in 256 that a client draws looks like one.
func generationOf(id []byte) (generation byte, ok bool) {
	if len(id) != idLength || id[idLength-1] != checksum(id[:idLength-1]) {
		return 0, false
	}
	return id[0], true
}

// checksum is a CRC of 8 bits with the polynomial x⁸+x²+x+1.
func checksum(b []byte) (sum byte) {
	sum = 0xff
	for _, c := range b {
		sum ^= c
		for range 8 {
			if sum&0x80 != 0 {
				sum = sum<<1 ^ 0x07
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// destination returns the destination connection ID of a datagram, and whether it can
// start a connection: an Initial or a 0-RTT packet, whose ID may be the client's choice
// (RFC 9000, section 17.2). The ID is nil if the datagram is not a QUIC packet.
func destination(b []byte) (id []byte, begins bool) {
	switch {
	case len(b) == 0:
		return nil, false
	case b[0]&0x80 == 0: // a short header, section 17.3
		if len(b) < 1+idLength {
			return nil, false
		}
		return b[1 : 1+idLength], false
	case len(b) < 6 || len(b) < 6+int(b[5]) || b[5] > maxID:
		return nil, false
	}
	packet := b[0] >> 4 & 3
	const initial, early = 0, 1 // of version 1; version 2 has others, and is not spoken
	return b[6 : 6+int(b[5])], packet == initial || packet == early
}

// maxID is the longest connection ID (RFC 9000, section 17.2).
const maxID = 20
