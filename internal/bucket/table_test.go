package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

func TestShapeOfTheTable(t *testing.T) {
	if size := unsafe.Sizeof(shard{}); size != 64 {
		t.Errorf("a shard takes %d bytes, want 64: a cache line", size)
	}
	if got := maxSets * ways * shardCount; got != maxKeys {
		t.Errorf("%d keys fit, want %d", got, maxKeys)
	}
}

func TestFullTableRemembersNearlyAll(t *testing.T) {
	tb, p := &Table{}, New(1, time.Hour, 1)
	keys := make([]uint64, maxKeys)
	for i := range keys {
		keys[i] = rand.Uint64()
		tb.Admit(keys[i], second, &p, false)
	}
	held := 0
	for _, k := range keys {
		if _, wait := tb.Admit(k, second, &p, true); wait > 0 {
			held++
		}
	}
	if held < maxKeys*90/100 {
		t.Errorf("%d of %d clients are remembered, want nearly all", held, maxKeys)
	}
	t.Logf("%d of %d clients are remembered (%.1f %%), %d KiB", held, maxKeys, 100*float64(held)/maxKeys, size(tb)>>10)
	if size(tb) > 2<<20+shardCount*64 {
		t.Errorf("the table takes %d bytes", size(tb))
	}
}

func size(tb *Table) int {
	n := int(unsafe.Sizeof(*tb))
	for i := range tb.shards {
		n += cap(tb.shards[i].mu.entries) * int(unsafe.Sizeof(entry{}))
	}
	return n
}

// A client that is over its limit cannot make the table forget it by sending
// from ever new addresses.
func TestAFloodOfNewClientsForgetsNobodyOverTheLimit(t *testing.T) {
	tb, p := &Table{}, New(100, time.Minute, 0)
	over := make([]uint64, 1000)
	now := second
	for i := range over {
		over[i] = rand.Uint64()
		for range 100 {
			tb.Admit(over[i], now, &p, false)
		}
	}
	for range 10 * maxKeys {
		tb.Admit(rand.Uint64(), now, &p, false)
		now += 10 // ten million new clients a second
	}
	forgotten := 0
	for _, k := range over {
		if _, wait := tb.Admit(k, now, &p, true); wait == 0 {
			forgotten++
		}
	}
	// In 13 ms nothing came back of what they used.
	if forgotten != 0 {
		t.Errorf("%d of %d clients over the limit are forgotten, want none", forgotten, len(over))
	}
}

func TestMarksThatPassedMakeRoom(t *testing.T) {
	tb, p := &Table{}, New(1000, time.Second, 1)
	now := second
	for range 50 {
		for range 100 {
			tb.Admit(rand.Uint64(), now, &p, false)
		}
		now += int64(time.Millisecond)
	}
	if got := size(tb); got > 64<<10 {
		t.Errorf("a hundred clients at a time make the table take %d bytes", got)
	}
}

func TestGrowingKeepsEveryMark(t *testing.T) {
	tb, p := &Table{}, New(1, time.Hour, 1)
	keys := make([]uint64, 20_000)
	for i := range keys {
		keys[i] = rand.Uint64()
		tb.Admit(keys[i], second, &p, false)
	}
	for _, k := range keys {
		if _, wait := tb.Admit(k, second, &p, true); wait == 0 {
			t.Fatal("a client was forgotten while there was room")
		}
	}
}

// BenchmarkFullTable is every request from a client that was not seen before,
// with the table full.
func BenchmarkFullTable(b *testing.B) {
	tb, p := &Table{}, New(1, time.Hour, 1)
	key := uint64(1)
	next := func() uint64 { key = key*6364136223846793005 + 1442695040888963407; return key ^ key>>29 }
	for range 4 * maxKeys {
		tb.Admit(next(), second, &p, false)
	}
	b.Run(fmt.Sprint(maxKeys), func(b *testing.B) {
		for b.Loop() {
			tb.Admit(next(), second, &p, false)
		}
	})
}

// BenchmarkAllCores is one client, and many, on all cores at once.
func BenchmarkAllCores(b *testing.B) {
	for _, clients := range []uint64{1, 10_000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			tb, p := &Table{}, New(1_000_000, time.Second, 0)
			b.RunParallel(func(pb *testing.PB) {
				now, k := second, uint64(0)
				for pb.Next() {
					now += 1000
					k++
					tb.Admit(k%clients*0x9e3779b97f4a7c15, now, &p, false)
				}
			})
		})
	}
}
