package proxyproto

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// The commands, families and transports of version 2 (PP, section 2.2).
const (
	version2     = 0x20
	commandLocal = 0x0
	commandProxy = 0x1

	familyNone = 0x0
	family4    = 0x1
	family6    = 0x2
	familyUnix = 0x3

	transportNone     = 0x0
	transportStream   = 0x1
	transportDatagram = 0x2
)

// Lengths of the addresses of a family, in bytes.
const (
	length4    = 12
	length6    = 36
	lengthUnix = 216
)

// typeCRC32C is the checksum over the whole header (PP, section 2.2.3).
const typeCRC32C = 0x03

// need2 is need for version 2.
func need2(b []byte) int {
	if len(b) < fixed2 {
		return fixed2 - len(b)
	}
	return fixed2 + int(binary.BigEndian.Uint16(b[14:])) - len(b)
}

// parse2 reads a block of version 2. Values that the protocol does not assign
// are rejected, as it requires (PP, section 2.2).
func parse2(b []byte) (Header, error) {
	command, family, transport := b[12], b[13]>>4, b[13]&0xf
	switch {
	case command == version2|commandLocal:
		return Header{}, nil // the rest is skipped whatever it is
	case command != version2|commandProxy:
		return Header{}, ErrInvalid
	case family == familyNone && transport == transportNone:
		return Header{}, nil
	case family == familyNone || family > familyUnix || transport != transportStream:
		return Header{}, ErrInvalid // datagrams do not come over TCP
	}
	length := [...]int{family4: length4, family6: length6, familyUnix: lengthUnix}[family]
	addresses := b[fixed2:]
	if len(addresses) < length {
		return Header{}, ErrInvalid
	}
	if err := checkExtras(b, fixed2+length); err != nil {
		return Header{}, err
	}
	switch family {
	case family4:
		return Header{
			Source:      netip.AddrPortFrom(netip.AddrFrom4([4]byte(addresses[:4])), binary.BigEndian.Uint16(addresses[8:])),
			Destination: netip.AddrPortFrom(netip.AddrFrom4([4]byte(addresses[4:8])), binary.BigEndian.Uint16(addresses[10:])),
		}, nil
	case family6:
		return Header{
			Source:      netip.AddrPortFrom(netip.AddrFrom16([16]byte(addresses[:16])).Unmap(), binary.BigEndian.Uint16(addresses[32:])),
			Destination: netip.AddrPortFrom(netip.AddrFrom16([16]byte(addresses[16:32])).Unmap(), binary.BigEndian.Uint16(addresses[34:])),
		}, nil
	}
	return Header{}, nil // a Unix socket has no address that could be a client's
}

// checkExtras walks over what follows the addresses: a type, a length and a value
// each (PP, section 2.2). All are skipped but the checksum.
func checkExtras(b []byte, at int) error {
	for at < len(b) {
		if len(b)-at < 3 {
			return ErrInvalid
		}
		kind, length := b[at], int(binary.BigEndian.Uint16(b[at+1:]))
		at += 3
		if len(b)-at < length {
			return ErrInvalid
		}
		if kind == typeCRC32C && !checksum(b, at, length) {
			return ErrChecksum
		}
		at += length
	}
	return nil
}

// checksum reports whether the checksum at a place of the header is that of the
// header, with zeros in its place.
func checksum(b []byte, at, length int) bool {
	if length != crc32.Size {
		return false
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, b[:at])
	sum = crc32.Update(sum, table, make([]byte, crc32.Size))
	sum = crc32.Update(sum, table, b[at+length:])
	return sum == binary.BigEndian.Uint32(b[at:])
}
