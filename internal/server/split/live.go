package split

import (
	"sync"
	"sync/atomic"
	"time"
)

// Group is one of the two groups of servers.
type Group uint8

// The groups.
const (
	Stable Group = iota
	Candidate
)

// String returns stable or candidate.
func (g Group) String() string {
	if g == Candidate {
		return "candidate"
	}
	return "stable"
}

// Points is how many parts clients are divided into: each has one point of them, and belongs
// to the candidate if that is below its percentage.
const Points = 100

// Live is the run-time side of a split: the current share, and what was counted. It outlives
// plans. All methods may be called concurrently.
type Live struct {
	share atomic.Int32
	epoch atomic.Uint32 // how often the candidate started again
	_     [56]byte      // the share is read by every request, what follows is written
	total [2]struct{ requests, errors atomic.Uint64 }
	group [2]window

	mu struct {
		sync.Mutex
		within time.Duration
		turn   int64 // number of the current slot since the epoch of the clock
	}
}

// NewLive returns a split whose candidate gets nothing, until SetShare.
func NewLive() *Live {
	l := &Live{}
	l.share.Store(-1)
	return l
}

// Retire is for exchange.Keep: it has nothing but memory.
func (l *Live) Retire() {}

// Share returns the candidate's percentage of clients.
func (l *Live) Share() int { return max(0, int(l.share.Load())) }

// Started reports whether SetShare was called: it is not in a plan that serves nothing.
func (l *Live) Started() bool { return l.share.Load() >= 0 }

// SetShare changes the percentage for all requests from now on.
func (l *Live) SetShare(percent int) { l.share.Store(int32(percent)) }

// Of returns the group of a client by its point, from 0 to Points-1.
func (l *Live) Of(point uint32) Group {
	if int32(point) < l.share.Load() {
		return Candidate
	}
	return Stable
}

// Observe counts a request: whether it failed, and the time until the response head.
func (l *Live) Observe(g Group, failed bool, took time.Duration) {
	l.total[g].requests.Add(1)
	if failed {
		l.total[g].errors.Add(1)
	}
	l.group[g].observe(failed, took)
}

// Totals returns what was counted of a group since the start.
func (l *Live) Totals(g Group) (requests, errors uint64) {
	return l.total[g].requests.Load(), l.total[g].errors.Load()
}

// Epoch returns a number that changes when the candidate starts again: what was stored of its
// responses before is not used.
func (l *Live) Epoch() uint32 { return l.epoch.Load() }

// Forget starts both windows again, for a candidate that starts again.
func (l *Live) Forget() {
	l.epoch.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.group[Stable].clear()
	l.group[Candidate].clear()
}

// Advance moves both windows on to a moment, by clock.Now. It is called about once a second.
func (l *Live) Advance(now int64, within time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	width := int64(within) / slots
	turn := now / width
	if within != l.mu.within { // counts of other slots are of another time
		l.mu.within, l.mu.turn = within, turn
	}
	for n := min(turn-l.mu.turn, slots); n > 0; n-- {
		l.group[Stable].move()
		l.group[Candidate].move()
	}
	l.mu.turn = max(turn, l.mu.turn)
}

// Stats is what was counted of a group in the window.
type Stats struct {
	// Requests are all, Errors those that failed.
	Requests, Errors int
	// P95 is the 95th percentile of the time to the response head, in milliseconds.
	P95 float64
}

// Compare returns what the window says about the candidate.
func (l *Live) Compare(r Rules) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	stable, candidate := l.group[Stable].sum(), l.group[Candidate].sum()
	return r.compare(&stable, &candidate)
}
