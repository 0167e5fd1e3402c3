package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// Out is why a server gets no requests, as a set of bits. 0 means that it
// gets requests.
type Out uint32

// The reasons why a server is out.
const (
	// Unhealthy: its checks fail.
	Unhealthy Out = 1 << iota
	// Ejected: it failed requests in a row.
	Ejected
	// Open: its circuit is open. It gets no requests even when the group
	// fails open.
	Open
	// Draining: an operator wants no new clients on it. Those that belong to it go on.
	Draining
	// Disabled: an operator has disabled it.
	Disabled
	// HalfOpen: its circuit lets a few requests through, as many as AllowProbes
	// said.
	HalfOpen
)

// Gauge is the run-time state of a server: active requests, response time, and whether it
// accepts requests. It is safe for concurrent use. It is part of a larger struct, with 16
// bytes before it that requests read, and rarely used fields after it.
type Gauge struct {
	// constant
	limit int64 // requests at once; 0 is no bound
	queue *Queue

	out    atomic.Uint32
	probes atomic.Int32 // how many a half-open circuit still lets through
	warm   atomic.Int64 // start of a slow start, 0 for none
	speed  atomic.Uint64

	_      [8]byte
	active atomic.Int64 // written with every request: on another cache line than the rest
}

// Init sets the number of requests that the server may run at once; 0 is no limit. Further
// requests wait in queue, which may be nil.
func (g *Gauge) Init(limit int, queue *Queue) { g.limit, g.queue = int64(limit), queue }

// Set adds reasons why the server gets no requests, Clear removes them.
func (g *Gauge) Set(why Out) { g.out.Or(uint32(why)) }

// Clear removes reasons, and wakes up requests that wait for the server.
func (g *Gauge) Clear(why Out) {
	g.out.And(^uint32(why))
	if g.queue != nil {
		for g.queue.waiting.Load() > 0 && g.queue.hand(g) {
		}
	}
}

// Out returns why the server gets no requests.
func (g *Gauge) Out() Out { return Out(g.out.Load()) }

// AllowProbes says how many requests a half-open circuit lets through from now
// on.
func (g *Gauge) AllowProbes(n int) { g.probes.Store(int32(n)) }

// AddProbe lets one more through.
func (g *Gauge) AddProbe() { g.probes.Add(1) }

// Warm starts a slow start at now; 0 ends it.
func (g *Gauge) Warm(now int64) { g.warm.Store(now) }

// Active returns how many requests run on the server.
func (g *Gauge) Active() int { return int(g.active.Load()) }

// Full reports whether the server runs as many requests as it may.
func (g *Gauge) Full() bool { return g.limit > 0 && g.active.Load() >= g.limit }

// full is Full for a caller that must not overtake waiting requests.
func (g *Gauge) full(waiter bool) bool {
	return g.limit > 0 && (g.active.Load() >= g.limit || !waiter && g.queue != nil && g.queue.waiting.Load() > 0)
}

// acquire counts a request, unless the server is full or its circuit lets no more
// through.
func (g *Gauge) acquire(waiter bool) bool {
	if g.out.Load()&uint32(HalfOpen) == 0 {
		return g.count(waiter)
	}
	if g.probes.Add(-1) >= 0 && g.count(waiter) {
		return true
	}
	g.probes.Add(1)
	return false
}

func (g *Gauge) count(waiter bool) bool {
	if g.limit == 0 {
		g.active.Add(1)
		return true
	}
	for !g.full(waiter) {
		if n := g.active.Load(); n < g.limit && g.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Release ends a request that Take, Wait or Claim started. The next waiting
// request gets its place.
func (g *Gauge) Release() {
	g.active.Add(-1)
	if g.queue != nil && g.queue.waiting.Load() > 0 {
		g.queue.hand(g)
	}
}

// decay is how long a measured time stays in the mean of p2c_ewma: after that
// long, a third of it is left.
const decay = 10 * time.Second

// Observe records the response time of the server. A time longer than the mean replaces it
// immediately, a shorter one lowers it slowly, so that a server that stalls is noticed with
// its first late response.
func (g *Gauge) Observe(took time.Duration, now int64) {
	for {
		old := g.speed.Load()
		mean, at := unpack(old)
		t := float32(max(took, 1))
		if old != 0 && t < mean {
			left := aged(now, at)
			t = mean*left + t*(1-left)
		}
		if g.speed.CompareAndSwap(old, pack(t, now)) {
			return
		}
	}
}

// Took returns the average response time, weighted by age; 0 if none is known.
func (g *Gauge) Took(now int64) time.Duration {
	mean, at := unpack(g.speed.Load())
	if mean == 0 {
		return 0
	}
	return time.Duration(mean * aged(now, at))
}

// pack puts a time and its moment, in milliseconds, into one word.
func pack(mean float32, now int64) uint64 {
	return uint64(math.Float32bits(mean))<<32 | uint64(uint32(now/int64(time.Millisecond)))
}

func unpack(word uint64) (mean float32, at uint32) {
	return math.Float32frombits(uint32(word >> 32)), uint32(word)
}

// aged returns what is left of something that was measured at a moment. The
// moments wrap around after 49 days; what is so old counts as new once.
func aged(now int64, at uint32) float32 {
	age := int32(uint32(now/int64(time.Millisecond)) - at)
	if age <= 0 {
		return 1
	}
	return float32(math.Exp(-float64(age) / float64(decay/time.Millisecond)))
}
