package bucket

import (
	"encoding/binary"
	"time"

	"headgate/internal/clock"
)

// markSize is the length of an exported mark in bytes: the key, and the time at which the
// bucket is full, in nanoseconds of Unix time.
const markSize = 16

// Export returns the seed and the marks of a table that has clock.Now for moments, for
// Import in another process. Marks that have passed are left out.
func Export(s Seed, t *Table) []byte {
	now := clock.Now()
	wall := time.Now().UnixNano() - now
	out := s.append(nil)
	for i := range t.shards {
		out = t.shards[i].export(out, now, wall)
	}
	return out
}

func (s *shard) export(out []byte, now, wall int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.entries {
		if e := &s.mu.entries[i]; !e.free(now) {
			out = binary.LittleEndian.AppendUint64(out, e.key)
			out = binary.LittleEndian.AppendUint64(out, uint64(int64(e.mark)+wall))
		}
	}
	return out
}

// Import puts what Export returned into an empty table, and returns its seed. It reports
// false for data that it cannot read. No mark is further away than the refill time of the
// policy, whatever the clocks say.
func Import(data []byte, t *Table, p *Policy) (Seed, bool) {
	if len(data) < seedSize || (len(data)-seedSize)%markSize != 0 || (len(data)-seedSize)/markSize > maxKeys {
		return Seed{}, false
	}
	now := clock.Now()
	wall := time.Now().UnixNano() - now
	for rest := data[seedSize:]; len(rest) > 0; rest = rest[markSize:] {
		key, mark := binary.LittleEndian.Uint64(rest), int64(binary.LittleEndian.Uint64(rest[8:]))-wall
		if mark = min(mark, now+p.tolerance); mark <= now {
			continue
		}
		s := &t.shards[key>>58]
		s.mu.Lock()
		*s.placeLocked(key, now) = entry{key, uint64(mark)}
		s.mu.Unlock()
	}
	return seedOf(data), true
}
