package cache

import (
	"bytes"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http1"
)

// store is what outlives a plan: the memory of a cache and the index over it. It
// is safe for use by several goroutines.
type store struct {
	// constant
	name  string
	seed  maphash.Seed
	clock func() time.Time
	begun time.Time
	log   *slog.Logger
	arena *arena
	dates http1.Date

	queue  queue
	shards [shardCount]shard

	resizing sync.Mutex // for limit and serving, which are read without

	limit   atomic.Int64 // memory_limit of the plan that serves, in bytes
	plans   atomic.Uint64
	serving atomic.Uint64 // the youngest plan that has served
	entries atomic.Int64  // that hold memory
	evicted atomic.Uint64
	sweeps  atomic.Uint64 // counts removals and invalidations from outside, such as purges
	wide    atomic.Uint64 // the last of them that was not about one address

	background chan struct{} // one for each that may run
	closed     atomic.Bool
}

// The shape of a store.
const (
	shardCount    = 64
	marks         = 64 // in a shard
	maxBackground = 64 // fetches in the background at once
	variants      = 64 // of one address, in all writings of its host
)

type shard struct {
	mu struct {
		sync.Mutex
		entries map[uint64]*entry // by hash; linked by next
		flights map[uint64]*flight
		marks   *[marks]mark // nil until one is made
		// swept are the last sweeps of addresses, by their hash; nil before the first.
		swept *[marks]uint64
	}
}

// mark remembers that the answers to a key are not for the cache, so that
// requests for it do not wait for each other.
type mark struct {
	hash  uint64
	until int64
}

func newStore(name string, limit int64, clock func() time.Time, log *slog.Logger) *store {
	s := &store{name: name, seed: maphash.MakeSeed(), clock: clock, begun: clock(), log: log, arena: newArena(limit)}
	s.background = make(chan struct{}, maxBackground)
	return s
}

// Retire releases all memory. Exchanges in progress keep what they hold.
func (s *store) Retire() {
	s.closed.Store(true)
	s.drop(func(*entry) bool { return true }, takeOut)
	s.arena.close()
}

func (s *store) hash(b []byte) uint64 { return maphash.Bytes(s.seed, b) }

func (s *store) shard(hash uint64) *shard { return &s.shards[hash>>58] }

// now returns the moment in nanoseconds since the store was made.
func (s *store) now() int64 { return int64(s.clock().Sub(s.begun)) }

// inBackground runs f if not too much runs already.
func (s *store) inBackground(f func()) bool {
	if s.closed.Load() {
		return false
	}
	select {
	case s.background <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-s.background }() // last: a drained channel means that the work is done
		defer func() {
			if v := recover(); v != nil {
				exchange.Broken(s.log, v, "work in the background of a cache")
			}
		}()
		f()
	}()
	return true
}

// findLocked returns the entry for a request, or nil. near reports that there is
// one for the key that is another variant.
func (sh *shard) findLocked(h *hit) (e *entry, near bool) {
	for e := sh.mu.entries[h.hash]; e != nil; e = e.next {
		if !bytes.Equal(e.key(), h.key) {
			continue
		}
		if h.selects(e, h.ex) {
			return e, false
		}
		near = near || e.part.total == 0
	}
	return nil, near
}

// markedLocked reports whether the answers to a key are not for the cache.
func (sh *shard) markedLocked(hash uint64, now int64) bool {
	if sh.mu.marks == nil {
		return false
	}
	m := &sh.mu.marks[hash%marks]
	return m.hash == hash && m.until > now
}

// mark remembers that the answers to a key are not for the cache.
func (s *store) mark(hash uint64, until int64) {
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.mu.marks == nil {
		sh.mu.marks = new([marks]mark)
	}
	if m := &sh.mu.marks[hash%marks]; m.hash != hash || m.until < until {
		*m = mark{hash, until}
	}
}

// unmark forgets that.
func (s *store) unmark(hash uint64) {
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.mu.marks == nil {
		return
	}
	if m := &sh.mu.marks[hash%marks]; m.hash == hash {
		*m = mark{}
	}
}

// link puts an entry into the index, in the place of those that the request h
// would have got. It is held by the index then. It returns those, for unqueue. It does
// nothing where the body is lost or the entry is late: its address was swept since there
// were begun sweeps, or old, which it was made of, was replaced by something newer.
func (s *store) link(h *hit, old, e *entry, begun uint64) (replaced []*entry, body state) {
	sh := s.shard(e.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.sweptLocked(sh, e.hash, begun) {
		return nil, late
	}
	count := 0
	var last *entry
	for x := sh.mu.entries[e.hash]; x != nil; x = x.next {
		if bytes.Equal(x.key(), h.key) && h.replaces(e, x) {
			replaced = append(replaced, x)
		} else {
			count, last = count+1, x
		}
	}
	if old != nil && !old.linked && len(replaced) > 0 {
		return nil, late
	}
	body, before := e.body.adopt(e)
	if before != nil {
		defer before.release()
	}
	if body == lost {
		return nil, lost
	}
	if count >= variants {
		replaced = append(replaced, last)
	}
	for _, x := range replaced {
		sh.unlinkLocked(x)
	}
	if old != nil {
		e.hits = old.hits
	}
	sh.linkLocked(e)
	return replaced, body
}

// linkLocked puts an entry into the index, which holds it.
func (sh *shard) linkLocked(e *entry) {
	e.hold()
	e.linked = true
	if sh.mu.entries == nil {
		sh.mu.entries = map[uint64]*entry{}
	}
	e.next = sh.mu.entries[e.hash]
	sh.mu.entries[e.hash] = e
}

// unlinkLocked removes an entry from the index and reports whether it was
// there.
func (sh *shard) unlinkLocked(e *entry) bool {
	if !e.linked {
		return false
	}
	e.linked = false
	head := sh.mu.entries[e.hash]
	if head == e {
		if e.next == nil {
			delete(sh.mu.entries, e.hash)
		} else {
			sh.mu.entries[e.hash] = e.next
		}
		e.next = nil
		return true
	}
	for x := head; x != nil; x = x.next {
		if x.next == e {
			x.next = e.next
			break
		}
	}
	e.next = nil
	return true
}

// unlink removes an entry from the index and the queue.
func (s *store) unlink(e *entry) {
	sh := s.shard(e.hash)
	sh.mu.Lock()
	was := sh.unlinkLocked(e)
	sh.mu.Unlock()
	if was {
		s.unqueue(e)
	}
}

// unqueue lets go of an entry that the index had.
func (s *store) unqueue(e *entry) {
	s.queue.remove(e)
	e.release()
}

// enqueue adds an entry whose body is whole to the queue. Only who put it into the
// index or ended its body may do so, and once.
func (s *store) enqueue(e *entry) {
	e.measure()
	s.queue.add(e)
	s.shrink()
}

// measure sets the size of an entry, once its body is complete.
func (e *entry) measure() { e.size = e.memory() }

// size returns the memory of a complete body.
func (b *body) size() (n int64) {
	for _, p := range b.mu.pieces {
		n += int64(cap(p.mem))
	}
	return n
}

// pages returns how many pages the arena may have.
func (s *store) pages() int {
	return int((s.limit.Load() - s.entries.Load()*entryCost) / int64(s.arena.page))
}

// bytes returns how much memory the store holds.
func (s *store) bytes() int64 { return s.arena.bytes() + s.entries.Load()*entryCost }

// The steps in which memory is freed.
const (
	evictions = 32 // entries, before a page is emptied
	emptied   = 4  // pages
)

// alloc returns memory for n bytes. Other entries are evicted if necessary.
func (s *store) alloc(n int, owner uint64) (piece, bool) {
	if s.closed.Load() {
		return piece{}, false
	}
	for range emptied + 1 {
		for range evictions {
			if x, ok := s.arena.alloc(n, owner, s.pages()); ok {
				return x, true
			}
			if !s.evict() {
				return piece{}, false
			}
		}
		s.empty()
	}
	return piece{}, false
}

// shrink evicts until the limit is met.
func (s *store) shrink() {
	for steps := 0; s.bytes() > max(s.limit.Load(), int64(s.arena.page)); steps++ {
		if steps%evictions == evictions-1 {
			s.empty()
		}
		if !s.evict() {
			return
		}
	}
}

// evict evicts the least valuable entry.
func (s *store) evict() bool {
	e := s.queue.evict()
	if e == nil {
		return false
	}
	s.evicted.Add(1)
	s.unlink(e)
	return true
}

// empty evicts the entries on a page with few pieces.
func (s *store) empty() {
	for _, hash := range s.arena.sparsest(nil) {
		sh := s.shard(hash)
		for {
			sh.mu.Lock()
			e := sh.mu.entries[hash]
			for e != nil && !e.body.whole.Load() {
				e = e.next
			}
			if e != nil {
				sh.unlinkLocked(e)
			}
			sh.mu.Unlock()
			if e == nil {
				break
			}
			s.evicted.Add(1)
			s.unqueue(e)
		}
	}
}

// drop removes the matching entries, or makes them stale if soft is true, and
// returns how many.
func (s *store) drop(match func(*entry) bool, how sweep) (n int) {
	if how != onlyCount {
		s.wide.Store(s.sweeps.Add(1))
	}
	var out []*entry
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, e := range sh.mu.entries {
			for ; e != nil; e = e.next {
				if match(e) {
					out = append(out, e)
				}
			}
		}
		n += len(out)
		for _, e := range out {
			switch how {
			case makeStale:
				e.purged.Store(true)
			case takeOut:
				sh.unlinkLocked(e)
			}
		}
		sh.mu.Unlock()
		for _, e := range out {
			if how == takeOut {
				s.unqueue(e)
			}
		}
		clear(out)
		out = out[:0]
	}
	return n
}

// sweptSince reports whether entries for a URL were removed or made stale since that
// number of sweeps. A response that was in transit meanwhile must not be stored; link
// checks again, when nothing can come in between.
func (s *store) sweptSince(hash, begun uint64) bool {
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return s.sweptLocked(sh, hash, begun)
}

func (s *store) sweptLocked(sh *shard, hash, begun uint64) bool {
	return s.wide.Load() > begun || sh.mu.swept != nil && sh.mu.swept[hash%marks] > begun
}

// resize sets the limit that holds from now on, once for each plan that serves.
func (s *store) resize(plan uint64, limit int64) {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	if plan <= s.serving.Load() {
		return
	}
	s.limit.Store(limit)
	s.serving.Store(plan)
	s.shrink()
}

// date returns the time as a Date field has it.
func (s *store) date() string { return s.dates.At(s.clock()) }
