// Package recent keeps the last requests in memory, for operators who look at current
// traffic: a Ring records every finished exchange and session, answers queries, and streams
// new records to followers.
//
// Memory is limited and grows as it is used. Requests that failed or were slow have their
// own part, so that they are kept longer. Record does not allocate once the memory exists,
// makes no system call, and acquires a shared lock only once for many requests. Readers do
// not block recording.
//
// It writes no file; the access log does.
package recent

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// DefaultSize is the default memory of a ring, and MinSize the minimum, in bytes.
const (
	DefaultSize = 32 << 20
	MinSize     = 1 << 20
)

// DefaultSlow is the duration from which requests are kept longer.
const DefaultSlow = time.Second

// The bounds of a ring's pieces.
const (
	maxChunk = 64 << 10
	minChunk = 8 << 10
	maxLanes = 64
)

// class is a part of the memory.
type class int

// Ordinary records have three quarters of the memory, notable ones the rest.
const (
	ordinary class = iota
	notable
	classes
)

// Config says how much a ring keeps.
type Config struct {
	// Size is the memory in bytes; 0 is DefaultSize, and less than MinSize is
	// MinSize.
	Size int64
	// Slow is the duration from which requests are kept longer; 0 is
	// DefaultSlow.
	Slow time.Duration
}

// Ring holds recent requests. Its methods may be called by several goroutines at
// once.
type Ring struct {
	// Constant.
	slow      int64
	chunkSize int
	lanes     []lane
	pool      sync.Pool    // of *lane: hands each processor its own
	max       [classes]int // chunks, those that are being filled among them

	next  atomic.Uint32 // the next lane of the pool
	order atomic.Uint64 // the order of chunks by when they were begun

	mu struct {
		sync.Mutex
		full  [classes][]*chunk // oldest first
		spare []*chunk
	}
	live followers

	retired chan struct{} // closed by Retire
}

// lane is what one processor fills, as a rule.
type lane struct {
	mu struct {
		sync.Mutex
		open [classes]*chunk
	}
	_ [128]byte // keeps lanes on cache lines of their own
}

// chunk is a run of records. The bytes up to its length are not changed while it
// is held by a reader.
type chunk struct {
	order   uint64
	buf     []byte
	readers int // guarded by Ring.mu
}

// New returns an empty ring.
func New(c Config) *Ring {
	size := max(c.Size, MinSize)
	if c.Size == 0 {
		size = DefaultSize
	}
	r := &Ring{slow: int64(c.Slow), lanes: make([]lane, laneCount(size)), retired: make(chan struct{})}
	if r.slow <= 0 {
		r.slow = int64(DefaultSlow)
	}
	r.chunkSize = int(min(max(size/int64(8*len(r.lanes)), minChunk), maxChunk))
	all := int(size) / r.chunkSize
	r.max[notable] = all / 4
	r.max[ordinary] = all - r.max[notable]
	r.pool.New = func() any { return r.nextLane() }
	return r
}

// laneCount returns how many lanes there are: a power of two, the number of
// processors and up to twice as many, as far as the memory allows.
func laneCount(size int64) int {
	n := 1
	for n <= runtime.GOMAXPROCS(0) && n < maxLanes && int64(n)*2*8*minChunk <= size {
		n *= 2
	}
	return n
}

func (r *Ring) nextLane() *lane { return &r.lanes[int(r.next.Add(1))&(len(r.lanes)-1)] }

// Record keeps a finished exchange. Nothing in it refers to ex.
func (r *Ring) Record(ex *exchange.Exchange) {
	end := ex.Times.End
	if end == 0 {
		end = exchange.Now()
	}
	status := ex.Status()
	c := ordinary
	if status >= 400 || ex.Reason != exchange.None || end-ex.Times.Start >= r.slow && ex.Response.Tunnel == nil {
		c = notable
	}
	l := r.lockLane()
	b := r.roomLocked(l, c)
	b.buf = appendExchange(b.buf, ex, status, end)
	l.mu.Unlock()
	r.pool.Put(l)
}

// RecordSession keeps a connection through a TCP proxy, or a session through a UDP
// proxy, that has ended. Nothing in it refers to p.
func (r *Ring) RecordSession(p *exchange.Session) {
	c := ordinary
	if p.Reason != exchange.None {
		c = notable
	}
	l := r.lockLane()
	b := r.roomLocked(l, c)
	b.buf = appendSession(b.buf, p)
	l.mu.Unlock()
	r.pool.Put(l)
}

// Retire ends all followers: another ring records from now on, or none. It is
// called once. What is held can still be queried.
func (r *Ring) Retire() { close(r.retired) }

// lockLane returns the lane of the current processor, locked. A processor that
// finds it locked acquires another and keeps that, so that no two stay on one.
func (r *Ring) lockLane() *lane {
	l := r.pool.Get().(*lane)
	if !l.mu.TryLock() {
		l = r.nextLane()
		l.mu.Lock()
	}
	return l
}

// roomLocked returns the chunk of l that the next record goes to.
func (r *Ring) roomLocked(l *lane, c class) *chunk {
	b := l.mu.open[c]
	if b == nil || len(b.buf)+maxRecord > cap(b.buf) {
		b = r.exchange(b, c)
		l.mu.open[c] = b
	}
	return b
}

// exchange accepts a full chunk, which may be nil, and returns an empty one: a
// spare one, or the oldest of its class at the limit.
func (r *Ring) exchange(b *chunk, c class) *chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b != nil {
		r.mu.full[c] = append(r.mu.full[c], b)
	}
	for len(r.mu.full[c]) > 0 && len(r.mu.full[c])+len(r.lanes) > r.max[c] {
		oldest := r.mu.full[c][0]
		n := copy(r.mu.full[c], r.mu.full[c][1:])
		r.mu.full[c][n] = nil
		r.mu.full[c] = r.mu.full[c][:n]
		if oldest.readers == 0 {
			r.mu.spare = append(r.mu.spare, oldest)
		}
	}
	next := r.emptyLocked()
	next.order = r.order.Add(1)
	return next
}

func (r *Ring) emptyLocked() *chunk {
	if n := len(r.mu.spare); n > 0 {
		b := r.mu.spare[n-1]
		r.mu.spare[n-1] = nil
		r.mu.spare = r.mu.spare[:n-1]
		b.buf = b.buf[:0]
		return b
	}
	return &chunk{buf: make([]byte, 0, r.chunkSize)}
}

// part is what a reader sees of a chunk: the records that were whole when it
// looked.
type part struct {
	chunk *chunk
	order uint64
	buf   []byte
	open  bool // more will follow
}

// hold returns the parts that were begun at or after an order, and keeps their
// chunks from being used again until release.
func (r *Ring) hold(from uint64) []part {
	var parts []part
	add := func(b *chunk, open bool) {
		if b != nil && b.order >= from {
			b.readers++
			parts = append(parts, part{b, b.order, b.buf[:len(b.buf):len(b.buf)], open})
		}
	}
	// A lane is locked before the ring, as Record does.
	for i := range r.lanes {
		l := &r.lanes[i]
		l.mu.Lock()
		r.mu.Lock()
		for _, b := range l.mu.open {
			add(b, true)
		}
		r.mu.Unlock()
		l.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[*chunk]bool, len(parts))
	for _, p := range parts {
		seen[p.chunk] = true
	}
	for _, full := range r.mu.full {
		for _, b := range full {
			if !seen[b] {
				add(b, false)
			}
		}
	}
	return parts
}

// release releases what hold returned.
func (r *Ring) release(parts []part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		p.chunk.readers--
	}
}

// Size returns the memory that is held, in bytes.
func (r *Ring) Size() int64 {
	n := 0
	for i := range r.lanes {
		l := &r.lanes[i]
		l.mu.Lock()
		for _, b := range l.mu.open {
			if b != nil {
				n++
			}
		}
		l.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n += len(r.mu.full[ordinary]) + len(r.mu.full[notable]) + len(r.mu.spare)
	return int64(n) * int64(r.chunkSize)
}
