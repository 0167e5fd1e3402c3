package bucket

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Seed makes keys of what tells clients apart, so that no client can choose which others
// it shares a set of a table with. Unlike one of hash/maphash it can be given to another
// process together with its table. The hash is SipHash-1-3.
type Seed struct{ a, b uint64 }

// seedSize is the length of a seed in bytes.
const seedSize = 16

// NewSeed returns a random seed.
func NewSeed() Seed {
	var b [seedSize]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return seedOf(b[:])
}

func seedOf(b []byte) Seed {
	return Seed{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// Derive returns another seed that follows from this one.
func (s Seed) Derive() Seed { return Seed{s.String("a"), s.String("b")} }

// append appends the bytes of the seed.
func (s Seed) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, s.a), s.b)
}

// Address returns the key of a client's address: that of its /64 network for
// IPv6, which is what one customer has.
func (s Seed) Address(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return s.word(uint64(binary.LittleEndian.Uint32(b[:]))|4<<56, 4)
	}
	b := a.As16()
	return s.word(binary.LittleEndian.Uint64(b[:]), 8)
}

// Uint32 returns the key of a number.
func (s Seed) Uint32(n uint32) uint64 { return s.word(uint64(n)|4<<56, 4) }

// String returns the key of a text.
func (s Seed) String(text string) uint64 {
	h := s.newSip()
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		h.add(uint64(rest[0]) | uint64(rest[1])<<8 | uint64(rest[2])<<16 | uint64(rest[3])<<24 |
			uint64(rest[4])<<32 | uint64(rest[5])<<40 | uint64(rest[6])<<48 | uint64(rest[7])<<56)
	}
	last := uint64(len(text)) << 56
	for i := range len(rest) {
		last |= uint64(rest[i]) << (8 * i)
	}
	h.add(last)
	return h.end()
}

// Words returns the key of a few numbers.
func (s Seed) Words(words ...uint64) uint64 {
	h := s.newSip()
	for _, w := range words {
		h.add(w)
	}
	h.add(uint64(8*len(words)) << 56)
	return h.end()
}

// Append appends the bytes of the seed, for SeedOf.
func (s Seed) Append(b []byte) []byte { return s.append(b) }

// SeedOf returns the seed whose bytes b starts with, and what follows it. It reports false
// if b is too short.
func SeedOf(b []byte) (s Seed, rest []byte, ok bool) {
	if len(b) < seedSize {
		return Seed{}, b, false
	}
	return seedOf(b), b[seedSize:], true
}

// word returns the key of up to 8 bytes: of fewer, w has their number in its highest byte.
func (s Seed) word(w uint64, length int) uint64 {
	h := s.newSip()
	h.add(w)
	if length == 8 {
		h.add(8 << 56)
	}
	return h.end()
}

// sip is the state of a SipHash-1-3 (Aumasson and Bernstein, 2012).
type sip struct{ v0, v1, v2, v3 uint64 }

func (s Seed) newSip() sip {
	return sip{s.a ^ 0x736f6d6570736575, s.b ^ 0x646f72616e646f6d, s.a ^ 0x6c7967656e657261, s.b ^ 0x7465646279746573}
}

func (h *sip) add(m uint64) {
	h.v3 ^= m
	h.round()
	h.v0 ^= m
}

func (h *sip) end() uint64 {
	h.v2 ^= 0xff
	h.round()
	h.round()
	h.round()
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3
}

func (h *sip) round() {
	h.v0 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 13) ^ h.v0
	h.v0 = bits.RotateLeft64(h.v0, 32)
	h.v2 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 16) ^ h.v2
	h.v0 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 21) ^ h.v0
	h.v2 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 17) ^ h.v2
	h.v2 = bits.RotateLeft64(h.v2, 32)
}
