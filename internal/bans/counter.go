package bans

import (
	"sync"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/exchange"
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
	// constant
	seed bucket.Seed
	// epoch is added to moments before they are cut into pieces, so that the numbers of the
	// pieces mean the same in another process.
	epoch  int64
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

func newCounters() *counters { return &counters{seed: bucket.NewSeed()} }

// openCounters returns counters for moments of exchange.Now, which another process can
// continue.
func openCounters() *counters {
	c := newCounters()
	c.epoch = wallClock()
	return c
}

// wallClock returns the Unix time, in nanoseconds, of moment 0.
func wallClock() int64 { return time.Now().UnixNano() - exchange.Now() }

// slotOf returns the number of the piece of time that a moment is in.
func (c *counters) slotOf(moment, piece int64) int64 { return (moment + c.epoch) / piece }

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
	key := c.keyOf(id, k)
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

// keyOf returns the key of the counter of a client by a condition, which is not 0.
func (c *counters) keyOf(id *condition, k hostKey) uint64 {
	return c.seed.Words(id.number, k.high, k.low, uint64(k.source)) | 1
}

// forget takes the counter of a client off the table: it was banned, and starts anew.
func (c *counters) forget(id *condition, k hostKey) {
	key := c.keyOf(id, k)
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
