package bucket

import (
	"sync"
	"time"
)

// The shape of a table: at most 131 072 marks, 2 MiB. A shard begins with one
// set and doubles while there are marks to keep, so a limit that few clients
// meet holds few kilobytes.
const (
	maxKeys    = 131_072
	shardCount = 64
	ways       = 8 // marks in a set
	maxSets    = maxKeys / shardCount / ways
)

// Table holds the marks of clients. It is safe for concurrent use; its zero value is empty.
//
// A client can be in one of two sets. If both are full of marks that still matter, the
// nearest mark is dropped: that of the client that has used the least of its bucket. A
// flood of new clients therefore displaces itself and not the clients over the limit; a
// dropped client is admitted rather than rejected. Each table has a random hash seed, so
// that a client cannot choose the set of another one.
type Table struct {
	shards [shardCount]shard
}

type shard struct {
	mu struct {
		sync.Mutex
		entries []entry // sets of ways, a power of two of them
	}
	_ [32]byte // a cache line for each shard
}

// entry is the mark of a client. One that has passed says nothing any more: its
// place is free.
type entry struct{ key, mark uint64 }

func (e *entry) free(now int64) bool { return int64(e.mark) <= now }

// Admit counts one request at the moment now by the client with this hash. It
// returns the client's mark and how long it has to wait, 0 if it need not. If
// dry is true nothing is kept of it.
func (t *Table) Admit(key uint64, now int64, p *Policy, dry bool) (mark, wait int64) {
	s := &t.shards[key>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.findLocked(key, now)
	if e != nil {
		mark = int64(e.mark)
	}
	mark, wait = p.conform(mark, now)
	if dry || wait > 0 {
		return mark, wait
	}
	if e == nil {
		e = s.placeLocked(key, now)
	}
	*e = entry{key, uint64(mark)}
	return mark, 0
}

// Peek returns how many requests the client with this hash may make at once, and
// how long it has to wait for the next, 0 if it need not. Nothing is kept of it.
func (t *Table) Peek(key uint64, now int64, p *Policy) (left int, wait time.Duration) {
	s := &t.shards[key>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := int64(0)
	if e := s.findLocked(key, now); e != nil {
		mark = int64(e.mark)
	}
	_, w := p.conform(mark, now)
	return p.Left(mark, now), time.Duration(max(w, 0))
}

// sets returns the two sets of a key.
func sets(entries []entry, key uint64) (a, b []entry) {
	mask := uint64(len(entries)/ways - 1)
	i, j := key&mask*ways, key>>24&mask*ways
	return entries[i : i+ways : i+ways], entries[j : j+ways : j+ways]
}

// findLocked returns the entry of a key whose mark has not passed, or nil.
func (s *shard) findLocked(key uint64, now int64) *entry {
	if s.mu.entries == nil {
		return nil
	}
	a, b := sets(s.mu.entries, key)
	for _, set := range [...][]entry{a, b} {
		for i := range set {
			if set[i].key == key && !set[i].free(now) {
				return &set[i]
			}
		}
	}
	return nil
}

// placeLocked returns the entry that a key without one takes.
func (s *shard) placeLocked(key uint64, now int64) *entry {
	if s.mu.entries == nil {
		s.mu.entries = make([]entry, ways)
	}
	for {
		e := place(s.mu.entries, key, now)
		if e.free(now) || len(s.mu.entries) >= maxSets*ways {
			return e
		}
		s.growLocked(now)
	}
}

// place returns a free entry for a key, in the set with more of them, or else
// the one with the nearest mark.
func place(entries []entry, key uint64, now int64) *entry {
	a, b := sets(entries, key)
	first, n := nearest(a, now)
	second, m := nearest(b, now)
	switch {
	case n == 0 && m == 0 && second.mark < first.mark, m > n:
		return second
	}
	return first
}

// nearest returns the entry of a set with the nearest mark, and how many are
// free.
func nearest(set []entry, now int64) (e *entry, free int) {
	e = &set[0]
	for i := range set {
		if set[i].free(now) {
			free++
		}
		if set[i].mark < e.mark {
			e = &set[i]
		}
	}
	return e, free
}

// growLocked doubles the shard. Marks that have passed are left behind.
func (s *shard) growLocked(now int64) {
	old := s.mu.entries
	s.mu.entries = make([]entry, 2*len(old))
	for i := range old {
		if e := &old[i]; !e.free(now) {
			*place(s.mu.entries, e.key, now) = *e
		}
	}
}
