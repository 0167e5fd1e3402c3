package ipset

import (
	"net/netip"
	"strings"
)

// maxNetworks is how many networks a remedy names.
const maxNetworks = 8

// networks returns the networks that make up a range, as text.
func networks(first, last netip.Addr) string {
	var names []string
	for at := first; ; {
		p, end := largest(at, last)
		if len(names) == maxNetworks {
			return strings.Join(names, ", ") + " and so on up to " + last.String()
		}
		if p.IsSingleIP() {
			names = append(names, at.String())
		} else {
			names = append(names, p.String())
		}
		if end == last {
			return strings.Join(names, ", ")
		}
		at = end.Next()
	}
}

// largest returns the largest network that starts at an address and does not go
// beyond last, and its last address.
func largest(at, last netip.Addr) (netip.Prefix, netip.Addr) {
	for bits := range at.BitLen() {
		p := netip.PrefixFrom(at, bits)
		if p.Masked().Addr() != at {
			continue
		}
		if end := lastOf(p); end.Compare(last) <= 0 {
			return p, end
		}
	}
	return netip.PrefixFrom(at, at.BitLen()), at
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
