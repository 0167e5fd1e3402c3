package bans

import (
	"hash/maphash"
	"sync"
)

// The shape of the table of counters: at most 131 072 of them, 5 MiB. A shard begins with
// one set and doubles, so a site that few clients misbehave at holds few kilobytes.
const (
	maxCounters   = 131_072
	counterShards = 64
	ways          = 8
	maxSets       = maxCounters / counterShards / ways
)

// slots is into how many pieces the time of a rule is cut. What happened is counted by
// piece, and the oldest piece is dropped whole: a client is never banned for fewer
// requests within the time than the rule says, and may get away with as many that are
// spread over more than seven eighths of it.
const slots = 8

// counters count what clients do, in bounded memory. When a set is full the counter that
// has the least is given up, of those the one that was used longest ago: a flood of
// new addresses pushes out itself, and those who were counted most often stay.
type counters struct {
	seed   maphash.Seed
	shards [counterShards]counterShard
}

type counterShard struct {
	mu struct {
		sync.Mutex
		entries []counter
	}
	_ [32]byte // a cache line for each shard
}

// counter is the counts of one client by one condition.
type counter struct {
	key  uint64 // 0 is free
	slot int64  // the last that was counted in
	n    [slots]uint16
}

func newCounters() *counters { return &counters{seed: maphash.MakeSeed()} }

// Retire is for exchange.Keep: counters hold nothing but memory.
func (c *counters) Retire() {}

// counted is what a counter says.
type counted struct {
	// total is how often it happened within the time, and oldest how many pieces ago
	// it did first.
	total  int
	oldest int64
}

// add counts one event at a moment, in a piece of time with this number.
func (c *counters) add(id *condition, k hostKey, slot int64) counted {
	key := maphash.Comparable(c.seed, counterKey{id.number, k}) | 1
	s := &c.shards[key>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.findLocked(key)
	if e == nil {
		e = s.placeLocked(key, slot)
		*e = counter{key: key, slot: slot}
	}
	e.advance(slot)
	if at := &e.n[slot%slots]; *at < 1<<16-1 {
		*at++
	}
	return e.total()
}

// counterKey is what a counter is for.
type counterKey struct {
	condition uint64
	client    hostKey
}

// forget takes the counter of a client off the table: it was banned, and starts anew.
func (c *counters) forget(id *condition, k hostKey) {
	key := maphash.Comparable(c.seed, counterKey{id.number, k}) | 1
	s := &c.shards[key>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.findLocked(key); e != nil {
		*e = counter{}
	}
}

// advance drops what is older than the time.
func (e *counter) advance(slot int64) {
	switch gone := slot - e.slot; {
	case gone <= 0:
		return
	case gone >= slots:
		e.n = [slots]uint16{}
	default:
		for i := e.slot + 1; i <= slot; i++ {
			e.n[i%slots] = 0
		}
	}
	e.slot = slot
}

func (e *counter) total() (out counted) {
	for i := range int64(slots) {
		if n := e.n[((e.slot-i)%slots+slots)%slots]; n > 0 {
			out.total += int(n)
			out.oldest = i
		}
	}
	return out
}

func (s *counterShard) setLocked(key uint64) []counter {
	mask := uint64(len(s.mu.entries)/ways - 1)
	i := key & mask * ways
	return s.mu.entries[i : i+ways : i+ways]
}

func (s *counterShard) findLocked(key uint64) *counter {
	if s.mu.entries == nil {
		return nil
	}
	set := s.setLocked(key >> 1)
	for i := range set {
		if set[i].key == key {
			return &set[i]
		}
	}
	return nil
}

// placeLocked returns the entry that a key without one takes.
func (s *counterShard) placeLocked(key uint64, slot int64) *counter {
	if s.mu.entries == nil {
		s.mu.entries = make([]counter, ways)
	}
	for {
		set := s.setLocked(key >> 1)
		worst := &set[0]
		for i := range set {
			e := &set[i]
			if e.key == 0 {
				return e
			}
			if a, b := e.total().total, worst.total().total; a < b || a == b && e.slot < worst.slot {
				worst = e
			}
		}
		if len(s.mu.entries) >= maxSets*ways {
			return worst
		}
		s.growLocked()
	}
}

// growLocked doubles the shard.
func (s *counterShard) growLocked() {
	before := s.mu.entries
	s.mu.entries = make([]counter, 2*len(before))
	for i := range before {
		if before[i].key == 0 {
			continue
		}
		set := s.setLocked(before[i].key >> 1)
		for j := range set {
			if set[j].key == 0 {
				set[j] = before[i]
				break
			}
		}
	}
}
