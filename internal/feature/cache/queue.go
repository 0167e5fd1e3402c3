package cache

import "sync"

// queue decides what is evicted when memory is full. It is S3-FIFO by bytes: a
// new entry enters a small queue; if it is requested again before it reaches the
// end, it moves to the main queue, where it stays for as long as it is
// requested; otherwise it is evicted, and only its hash is remembered for a
// while, so that it enters the main queue directly if it is requested again. A
// scan over many things that are requested once passes through the small queue
// and leaves the main one alone. A hit moves nothing and acquires no lock.
//
// It is safe for use by several goroutines.
type queue struct {
	mu struct {
		sync.Mutex
		small, main ring
		ghosts      ghosts
	}
}

// smallShare is the part of all bytes that the small queue may have: one in so
// many.
const smallShare = 10

// maxUse is how high uses are counted.
const maxUse = 3

// the queue of an entry.
type where uint8

const (
	nowhere where = iota // not yet in a queue
	inSmall
	inMain
	gone // never to be added again
)

// ring is a doubly linked list of entries, oldest first.
type ring struct {
	oldest, newest *entry
	bytes          int64
	entries        int
}

func (r *ring) push(e *entry) {
	e.queued.before, e.queued.behind = r.newest, nil
	if r.newest == nil {
		r.oldest = e
	} else {
		r.newest.queued.behind = e
	}
	r.newest = e
	r.bytes += e.size
	r.entries++
}

func (r *ring) remove(e *entry) {
	before, behind := e.queued.before, e.queued.behind
	if before == nil {
		r.oldest = behind
	} else {
		before.queued.behind = behind
	}
	if behind == nil {
		r.newest = before
	} else {
		behind.queued.before = before
	}
	e.queued.before, e.queued.behind = nil, nil
	r.bytes -= e.size
	r.entries--
}

// add adds an entry.
func (q *queue) add(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.queued.where != nowhere {
		return
	}
	q.mu.ghosts.fit(q.mu.small.entries + q.mu.main.entries)
	if q.mu.ghosts.remove(e.hash) {
		e.queued.where = inMain
		q.mu.main.push(e)
		return
	}
	e.queued.where = inSmall
	q.mu.small.push(e)
}

// follow adds an entry in place of another that it replaces.
func (q *queue) follow(e, old *entry) {
	q.mu.Lock()
	kept := old.queued.where == inMain
	if kept && e.queued.where == nowhere {
		e.queued.where = inMain
		q.mu.main.push(e)
	}
	q.removeLocked(old)
	q.mu.Unlock()
	e.used.Store(old.used.Load())
	if !kept {
		q.add(e)
	}
}

// remove removes an entry permanently.
func (q *queue) remove(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(e)
}

func (q *queue) removeLocked(e *entry) {
	switch e.queued.where {
	case inSmall:
		q.mu.small.remove(e)
	case inMain:
		q.mu.main.remove(e)
	}
	e.queued.where = gone
}

// evict removes the least valuable entry. It returns nil if there is none.
func (q *queue) evict() *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		small, main := &q.mu.small, &q.mu.main
		if small.oldest != nil && (main.oldest == nil || small.entries > 1 && small.bytes*smallShare > small.bytes+main.bytes) {
			e := small.oldest
			small.remove(e)
			if e.used.Load() > 0 {
				e.used.Store(0)
				e.queued.where = inMain
				main.push(e)
				continue
			}
			e.queued.where = gone
			q.mu.ghosts.add(e.hash)
			return e
		}
		e := main.oldest
		if e == nil {
			return nil
		}
		main.remove(e)
		if n := e.used.Load(); n > 0 {
			e.used.Store(n - 1)
			main.push(e)
			continue
		}
		e.queued.where = gone
		return e
	}
}

// ghosts remembers the hashes of entries that were given up soon, about as many
// as there are entries.
type ghosts struct {
	slots []ghost // sets of ghostWays, a power of two of them
	clock uint32
}

type ghost struct {
	tag   uint32
	since uint32 // by clock; 0 is a free slot
}

// The shape of the table: it grows with the number of entries.
const (
	ghostWays = 4
	minGhost  = 1 << 10
	maxGhosts = 1 << 22
	ghostSize = 8 // bytes of a slot
)

// fit adjusts the number of ghosts to about the number of entries.
func (g *ghosts) fit(entries int) {
	if len(g.slots) >= minGhost && (len(g.slots) >= entries || len(g.slots) >= maxGhosts) {
		return
	}
	old := g.slots
	g.slots = make([]ghost, max(minGhost, 2*len(old)))
	_ = old // what was remembered is forgotten: it is a guess, and seldom lost
}

func (g *ghosts) set(hash uint64) ([]ghost, uint32) {
	at := int(hash>>20) & (len(g.slots)/ghostWays - 1) * ghostWays
	return g.slots[at : at+ghostWays], uint32(hash>>44) ^ uint32(hash)<<20
}

// add remembers a hash.
func (g *ghosts) add(hash uint64) {
	if len(g.slots) == 0 {
		return
	}
	set, tag := g.set(hash)
	oldest := &set[0]
	for i := range set {
		if set[i].since < oldest.since {
			oldest = &set[i]
		}
	}
	g.clock++
	*oldest = ghost{tag, g.clock}
}

// remove reports whether a hash is remembered, and forgets it.
func (g *ghosts) remove(hash uint64) bool {
	if len(g.slots) == 0 {
		return false
	}
	set, tag := g.set(hash)
	for i := range set {
		if x := &set[i]; x.since > 0 && x.tag == tag {
			*x = ghost{}
			return true
		}
	}
	return false
}
