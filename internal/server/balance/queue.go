package balance

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is where requests wait for servers that have as many as they may. First
// come, first served. It is safe for use by many goroutines at once.
type Queue struct {
	length  int
	waiting atomic.Int32 // len(mu.list)

	mu struct {
		sync.Mutex
		list []*waiter
	}
}

// waiter is a request that waits.
type waiter struct {
	group *Group
	ask   *Ask
	place chan int // of the server it was handed; holds one
}

// NewQueue returns a queue for at most length requests.
func NewQueue(length int) *Queue { return &Queue{length: length} }

// Waiting returns how many requests wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Retire does nothing: waiting requests are woken up by others that end, or time
// out.
func (q *Queue) Retire() {}

// look is how often a waiting request checks whether it is still needed.
const look = 100 * time.Millisecond

// Wait is Take for a request that may wait until a server has capacity: for at most
// patience, while gone is false. It returns Full immediately if the queue is full.
func (g *Group) Wait(a *Ask, patience time.Duration, gone func() bool) (int, Outcome) {
	i, outcome := g.Choose(a)
	if outcome != Full || g.queue == nil || patience <= 0 {
		return i, outcome
	}
	own := *a // what waits outlives the frame of the caller no longer than this call
	own.waiter = true
	w := &waiter{group: g, ask: &own, place: make(chan int, 1)}
	if i, outcome, waits := g.queue.enter(w); !waits {
		return i, outcome
	}
	timer := time.NewTimer(min(patience, look))
	defer timer.Stop()
	for left := patience; ; {
		select {
		case i := <-w.place:
			return i, Chosen
		case <-timer.C:
		}
		left -= min(left, look)
		if left <= 0 || gone() {
			if g.queue.leave(w) {
				return -1, Full
			}
			return <-w.place, Chosen // it was handed a server at the last moment
		}
		// The eligible servers may have changed without free capacity on any of them.
		if i, outcome := g.queue.retry(w); outcome != Full {
			return i, outcome
		}
		timer.Reset(min(left, look))
	}
}

// enter puts a waiter at the end of the queue, unless it gets a server at once, or as
// many wait as may.
func (q *Queue) enter(w *waiter) (i int, outcome Outcome, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// It is in the queue before it checks: capacity that is released from here on is passed
	// to it, and earlier capacity is seen.
	q.mu.list = append(q.mu.list, w)
	q.waiting.Store(int32(len(q.mu.list)))
	if i, outcome = q.retryLocked(w); outcome != Full {
		return i, outcome, false
	}
	if len(q.mu.list) > q.length {
		q.leaveLocked(w)
		return -1, Full, false
	}
	return -1, Full, true
}

// leave removes a waiter. It returns false when the waiter has a server already.
func (q *Queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.leaveLocked(w)
}

func (q *Queue) leaveLocked(w *waiter) bool {
	at := slices.Index(q.mu.list, w)
	if at < 0 {
		return false
	}
	q.mu.list = slices.Delete(q.mu.list, at, at+1)
	q.waiting.Store(int32(len(q.mu.list)))
	return true
}

// retry lets a waiter look once more. Full says that it goes on waiting.
func (q *Queue) retry(w *waiter) (int, Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.retryLocked(w)
}

func (q *Queue) retryLocked(w *waiter) (int, Outcome) {
	at := slices.Index(q.mu.list, w)
	switch {
	case at < 0:
		return <-w.place, Chosen
	case at == 0:
		i, outcome := w.group.Choose(w.ask)
		if outcome != Full {
			q.leaveLocked(w)
		}
		return i, outcome
	}
	if _, outcome := w.group.candidates(w.ask, &Tried{}); outcome != Chosen {
		if outcome != Full {
			q.leaveLocked(w)
		}
		return -1, outcome
	}
	// A server may have capacity that the waiters in front cannot use, as they have
	// tried it.
	for i := range w.group.members {
		for gauge := w.group.members[i].Gauge; !gauge.full(true) && q.handLocked(gauge); {
			if !slices.Contains(q.mu.list, w) {
				return <-w.place, Chosen
			}
		}
	}
	return -1, Full
}

// hand passes the server to the first request that can use it. It returns false if there is
// none.
func (q *Queue) hand(gauge *Gauge) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handLocked(gauge)
}

func (q *Queue) handLocked(gauge *Gauge) bool {
	for _, w := range q.mu.list {
		i := w.group.placeOf(gauge)
		if i < 0 || !w.group.usable(i, w.ask) {
			continue
		}
		if !gauge.acquire(true) {
			return false
		}
		q.leaveLocked(w)
		w.place <- i
		return true
	}
	return false
}

// placeOf returns the place of a server, -1 if the group does not have it.
func (g *Group) placeOf(gauge *Gauge) int {
	return slices.IndexFunc(g.members, func(m Member) bool { return m.Gauge == gauge })
}

// usable reports whether Take may choose the server at i for a.
func (g *Group) usable(i int, a *Ask) bool {
	set, _ := g.candidates(a, &Tried{})
	return set.Has(i)
}
