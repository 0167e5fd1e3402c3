package proxyproto

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// Version is a version of the protocol.
type Version uint8

// The versions that Append writes.
const (
	V1 Version = 1
	V2 Version = 2
)

// Append appends the header of a connection from source to destination. If an address is
// invalid, the header has no addresses; two of different families are both written as IPv6.
func Append(b []byte, v Version, source, destination netip.AddrPort) []byte {
	known, source, destination := ready(source, destination)
	if v == V1 {
		return append1(b, known, source, destination)
	}
	return append2(b, known, transportStream, source, destination)
}

// AppendDatagram appends the header of a datagram from source to destination, in version 2:
// version 1 has none. Receivers expect it before each datagram. Addresses are as in Append.
func AppendDatagram(b []byte, source, destination netip.AddrPort) []byte {
	known, source, destination := ready(source, destination)
	return append2(b, known, transportDatagram, source, destination)
}

// ready returns addresses of one family, and whether both are valid.
func ready(source, destination netip.AddrPort) (known bool, from, to netip.AddrPort) {
	from, to = plain(source), plain(destination)
	known = from.IsValid() && to.IsValid()
	if known && from.Addr().Is4() != to.Addr().Is4() {
		from = netip.AddrPortFrom(netip.AddrFrom16(from.Addr().As16()), from.Port())
		to = netip.AddrPortFrom(netip.AddrFrom16(to.Addr().As16()), to.Port())
	}
	return known, from, to
}

// plain returns an address without a zone, and IPv4 as such.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func append1(b []byte, known bool, source, destination netip.AddrPort) []byte {
	switch {
	case !known:
		return append(b, "PROXY UNKNOWN\r\n"...)
	case source.Addr().Is4():
		b = append(b, "PROXY TCP4 "...)
	default:
		b = append(b, "PROXY TCP6 "...)
	}
	b = append(source.Addr().AppendTo(b), ' ')
	b = append(destination.Addr().AppendTo(b), ' ')
	b = append(strconv.AppendUint(b, uint64(source.Port()), 10), ' ')
	return append(strconv.AppendUint(b, uint64(destination.Port()), 10), '\r', '\n')
}

func append2(b []byte, known bool, transport byte, source, destination netip.AddrPort) []byte {
	b = append(b, signature...)
	switch {
	case !known:
		return append(b, version2|commandProxy, familyNone, 0, 0)
	case source.Addr().Is4():
		b = append(b, version2|commandProxy, family4<<4|transport, 0, length4)
	default:
		b = append(b, version2|commandProxy, family6<<4|transport, 0, length6)
	}
	b = append(b, source.Addr().AsSlice()...)
	b = append(b, destination.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, source.Port())
	return binary.BigEndian.AppendUint16(b, destination.Port())
}
