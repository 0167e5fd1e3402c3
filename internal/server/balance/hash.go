package balance

import (
	"encoding/binary"
	"net/netip"
)

// HashText returns the key of a text. It is the same on every machine.
func HashText[T string | []byte](text T) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, whose bits mix spreads
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mix(h)
}

// HashAddr returns the key of a client's address; addresses of one IPv6 /64
// network, which is what one customer has, have the same.
func HashAddr(a netip.Addr) uint64 {
	if a = a.Unmap(); a.Is4() {
		b := a.As4()
		return mix(uint64(binary.BigEndian.Uint32(b[:])))
	}
	b := a.As16()
	return mix(binary.BigEndian.Uint64(b[:8]) + 1<<32)
}

// mix spreads every bit of h over all others (the finaliser of splitmix64).
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
