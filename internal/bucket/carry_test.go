package bucket

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate/internal/clock"
)

func TestTextsAndWordsHaveOneHash(t *testing.T) {
	s := NewSeed()
	b := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	if s.word(binary.LittleEndian.Uint64(b[:]), 8) != s.String(string(b[:])) {
		t.Error("a word of 8 bytes has a hash different from that of the text")
	}
	if s.Uint32(0x04030201) != s.String(string(b[:4])) {
		t.Error("a number has a hash different from that of its bytes")
	}
	seen := map[uint64]int{}
	for n := range 100 {
		h := s.String(strings.Repeat("\x00", n))
		if other, ok := seen[h]; ok {
			t.Errorf("%d and %d zeros have the same hash", n, other)
		}
		seen[h] = n
	}
	if s.String("x") == NewSeed().String("x") {
		t.Error("two seeds give the same hash")
	}
}

func TestCarriedTableGoesOn(t *testing.T) {
	var old Table
	seed, p := NewSeed(), New(3, time.Hour, 3)
	for i := range 1000 {
		key := seed.Address(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		for range i % 4 {
			old.Admit(key, clock.Now(), &p, false)
		}
	}
	var now Table
	got, ok := Import(Export(seed, &old), &now, &p)
	if !ok || got != seed {
		t.Fatalf("seed %v, %v", got, ok)
	}
	for i := range 1000 {
		key := got.Address(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		left, wait := now.Peek(key, clock.Now(), &p)
		if left != 3-i%4 || (wait > 0) != (i%4 == 3) {
			t.Errorf("client %d, which made %d requests: %d left, wait %v", i, i%4, left, wait)
		}
	}
}

// TestImportHoldsNoClientLonger lets the wall clock of the export be far ahead.
func TestImportHoldsNoClientLonger(t *testing.T) {
	p := New(1, time.Second, 2)
	data := binary.LittleEndian.AppendUint64(Seed{}.append(nil), 7)
	data = binary.LittleEndian.AppendUint64(data, uint64(time.Now().Add(24*time.Hour).UnixNano()))
	var table Table
	if _, ok := Import(data, &table, &p); !ok {
		t.Fatal("not read")
	}
	if _, wait := table.Peek(7, clock.Now(), &p); wait <= 0 || wait > p.Refill() {
		t.Errorf("the client waits %v", wait)
	}
	for _, bad := range [][]byte{nil, {1}, data[:len(data)-1]} {
		if _, ok := Import(bad, new(Table), &p); ok {
			t.Errorf("%d bytes were read", len(bad))
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New(10, time.Second, 5)
		var table Table
		s, ok := Import(data, &table, &p)
		if !ok {
			return
		}
		if again, ok := Import(Export(s, &table), new(Table), &p); !ok || again != s {
			t.Fatalf("%v, %v", again, ok)
		}
	})
}
