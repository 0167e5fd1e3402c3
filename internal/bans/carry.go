package bans

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/exchange"
	"headgate/internal/store"
)

// What a process that is replaced gives to the new one: bans that are not in the store yet
// (Unsaved), the counters of rules, what rules that observe have seen, and which clients
// signed in lately.
var (
	_ exchange.Carried = (*counters)(nil)
	_ exchange.Carried = (*state)(nil)
)

// counterSize is the length of an exported counter in bytes: its key, the last piece of
// time, and the counts.
const counterSize = 16 + 2*slots

// Export is that of an exchange.Carried: the seed, how far the wall clock was moved since the
// epoch was set, and the counters.
func (c *counters) Export() []byte {
	le := binary.LittleEndian
	out := le.AppendUint64(c.seed.Append(nil), uint64(wallClock()-c.epoch))
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for j := range s.mu.entries {
			e := &s.mu.entries[j]
			if e.key == 0 {
				continue
			}
			out = le.AppendUint64(le.AppendUint64(out, e.key), uint64(e.slot))
			for _, n := range e.n {
				out = le.AppendUint16(out, n)
			}
		}
		s.mu.Unlock()
	}
	return out
}

// Import is that of an exchange.Carried.
func (c *counters) Import(data []byte) {
	le := binary.LittleEndian
	seed, rest, ok := bucket.SeedOf(data)
	if !ok || len(rest) < 8 || (len(rest)-8)%counterSize != 0 || (len(rest)-8)/counterSize > maxCounters {
		return
	}
	c.seed, c.epoch = seed, wallClock()-int64(le.Uint64(rest))
	for rest = rest[8:]; len(rest) > 0; rest = rest[counterSize:] {
		e := counter{key: le.Uint64(rest) | 1, slot: int64(le.Uint64(rest[8:]))}
		for i := range e.n {
			e.n[i] = le.Uint16(rest[16+2*i:])
		}
		if e.slot < 0 {
			continue // no moment of this time
		}
		s := &c.shards[e.key>>58]
		s.mu.Lock()
		at := s.findLocked(e.key)
		if at == nil {
			at = s.placeLocked(e.key, e.slot)
		}
		*at = e
		s.mu.Unlock()
	}
}

// carriedState is what a rule has seen, for another process.
type carriedState struct {
	Since    time.Time      `json:"since"`
	Requests uint64         `json:"requests"`
	Bans     uint64         `json:"bans"`
	More     int            `json:"more,omitempty"`
	Would    []carriedWould `json:"would,omitempty"`
}

// carriedWould is a client that a rule would have banned, with its key.
type carriedWould struct {
	High   uint64 `json:"high,omitempty"`
	Low    uint64 `json:"low"`
	Source Source `json:"source,omitempty"`
	Would
}

// Export is that of an exchange.Carried.
func (s *state) Export() []byte {
	out := carriedState{Since: s.since, Requests: s.requests.Load(), Bans: s.bans.Load()}
	s.mu.Lock()
	out.More = s.mu.more
	for k, w := range s.mu.would {
		out.Would = append(out.Would, carriedWould{k.high, k.low, k.source, *w})
	}
	s.mu.Unlock()
	data, err := json.Marshal(out)
	if err != nil {
		return nil // there is nothing in it that cannot be written
	}
	return data
}

// Import is that of an exchange.Carried.
func (s *state) Import(data []byte) {
	var in carriedState
	if json.Unmarshal(data, &in) != nil || in.Since.IsZero() || len(in.Would) > maxWould {
		return
	}
	s.since = in.Since
	s.requests.Store(in.Requests)
	s.bans.Store(in.Bans)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.more = in.More
	s.mu.would = make(map[hostKey]*Would, len(in.Would))
	for i := range in.Would {
		w := &in.Would[i]
		s.mu.would[hostKey{w.High, w.Low, w.Source}] = &w.Would
	}
}

// seenSize is the length of an exported client that signed in: its key, and when.
const seenSize = 32

// SignedInLately returns the clients that signed in within 24 hours, for another process.
func (e *Engine) SignedInLately() []byte { return e.seen.export() }

// RestoreSignedIn accepts what SignedInLately returned in another process.
func (e *Engine) RestoreSignedIn(data []byte) { e.seen.restore(data) }

func (s *seen) export() (out []byte) {
	le, wall := binary.LittleEndian, wallClock()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.Lock()
		for k, at := range shard.at {
			out = le.AppendUint64(le.AppendUint64(le.AppendUint64(out, k.high), k.low), uint64(k.source))
			out = le.AppendUint64(out, uint64(at+wall))
		}
		shard.Unlock()
	}
	return out
}

func (s *seen) restore(data []byte) {
	le, wall, now := binary.LittleEndian, wallClock(), exchange.Now()
	for ; len(data) >= seenSize; data = data[seenSize:] {
		k := hostKey{le.Uint64(data), le.Uint64(data[8:]), Source(le.Uint64(data[16:]))}
		if at := int64(le.Uint64(data[24:])) - wall; now-at < seenTime {
			s.mark(k, min(at, now))
		}
	}
}

// Unsaved is a change that is not in the store yet, for a process that replaces this one.
type Unsaved struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"` // absent for one that is deleted
	TTL   time.Duration   `json:"ttl,omitempty"`
}

// Unsaved returns what is not in the store yet.
func (e *Engine) Unsaved() (all []Unsaved) {
	e.mu.Lock()
	defer e.mu.Unlock()
	merged := maps.Clone(e.mu.writing)
	if merged == nil {
		merged = map[string]store.Entry{}
	}
	maps.Copy(merged, e.mu.dirty)
	for key, entry := range merged {
		all = append(all, Unsaved{key, entry.Value, entry.TTL})
	}
	return all
}

// Restore accepts what the process before had not saved, and saves it. published says that
// the process before has published the events of it.
func (e *Engine) Restore(all []Unsaved, published bool) {
	for _, u := range all {
		if !strings.HasPrefix(u.Key, store.PrefixBan) {
			continue
		}
		b, fresh := e.restoreOne(u)
		if fresh && !published {
			e.began(b)
		}
	}
}

// restoreOne accepts one change. It returns the ban if that is in force from now on.
func (e *Engine) restoreOne(u Unsaved) (b *Ban, fresh bool) {
	id, isBan := banIDOf(u.Key)
	before := e.banAt(id)
	e.accept(u.Key, u.Value)
	b = e.banAt(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, newer := e.mu.dirty[u.Key]; !newer {
		e.mu.dirty[u.Key] = store.Entry{Key: u.Key, Value: u.Value, TTL: u.TTL}
	}
	return b, isBan && b != nil && b != before
}

// banAt returns the ban of a client, nil for none.
func (e *Engine) banAt(id banID) *Ban {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.all[id]
}
