package ipset

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"math/rand/v2"
	"net/netip"
)

// hosts is a set of single IPv4 addresses, which most external lists consist of: a hash table
// with open addressing, at most half full. It uses a tenth of the memory of a trie, and a
// lookup reads one cache line. The multiplier is random, so that no publisher can make a list
// whose addresses all collide. The zero value is empty.
type hosts struct {
	slots []uint32 // a power of two of them; 0 is a free one
	mult  uint64   // odd
	shift uint8
	count int
	zero  bool // 0.0.0.0 is in the set
}

// hostsOf returns the set of some addresses, each once.
func hostsOf(n int, all iter.Seq[uint32]) hosts {
	if n == 0 {
		return hosts{}
	}
	size := bits.Len(uint(2*n - 1))
	h := hosts{slots: make([]uint32, 1<<size), mult: rand.Uint64() | 1, shift: uint8(64 - size)}
	for a := range all {
		h.insert(a)
	}
	return h
}

func (h *hosts) insert(a uint32) {
	if a == 0 {
		if !h.zero {
			h.zero = true
			h.count++
		}
		return
	}
	for i := h.place(a); ; i = h.next(i) {
		switch h.slots[i] {
		case a:
			return
		case 0:
			h.slots[i] = a
			h.count++
			return
		}
	}
}

func (h *hosts) place(a uint32) int { return int(uint64(a) * h.mult >> h.shift) }

func (h *hosts) next(i int) int { return (i + 1) & (len(h.slots) - 1) }

func (h *hosts) has(a uint32) bool {
	if a == 0 || len(h.slots) == 0 {
		return h.zero && a == 0
	}
	for i := h.place(a); ; i = h.next(i) {
		switch h.slots[i] {
		case a:
			return true
		case 0:
			return false
		}
	}
}

// all yields the addresses, in no order.
func (h *hosts) all(yield func(uint32) bool) {
	if h.zero && !yield(0) {
		return
	}
	for _, a := range h.slots {
		if a != 0 && !yield(a) {
			return
		}
	}
}

// isHost reports whether a network is a single IPv4 address.
func isHost(p netip.Prefix) bool { return p.Bits() == 32 && p.Addr().Is4() }

// number returns an IPv4 address as a number.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// host returns the network of a single IPv4 address.
func host(n uint32) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.PrefixFrom(netip.AddrFrom4(b), 32)
}
