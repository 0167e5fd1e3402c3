package recent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// How requests come to followers.
const (
	// pollEvery is how often new records are looked for while there are followers.
	pollEvery = 200 * time.Millisecond
	// queueSize is how many requests may wait for a follower.
	queueSize = 512
	// maxFollowers is how many there may be at once.
	maxFollowers = 256
)

// ErrFollowers is returned by Follow when there are too many followers.
var ErrFollowers = errors.New("follow requests: too many are following already")

// Live is one request as it arrives, or a gap: at least Missed requests were
// not shown, because they arrived faster than the follower reads them.
type Live struct {
	Request Request
	Missed  uint64
}

// followers are those who want requests as they come. Nothing runs while there
// are none.
type followers struct {
	mu struct {
		sync.Mutex
		all map[*follower]bool
		// ended is closed when the poller has ended.
		ended chan struct{}
	}
}

type follower struct {
	m      *matcher
	queue  chan Request
	missed uint64 // guarded by followers.mu
}

// Follow is Subscribe and Run.
func (r *Ring) Follow(ctx context.Context, q Query, each func(Live) bool) error {
	s, err := r.Subscribe(q)
	if err == nil {
		s.Run(ctx, each)
	}
	return err
}

// Subscription is a follower that gets everything from now on. It is for one goroutine,
// and ends with Run or Close.
type Subscription struct {
	ring *Ring
	f    *follower
}

// Subscribe returns a subscription to the requests of a query. The error is ErrFollowers.
func (r *Ring) Subscribe(q Query) (*Subscription, error) {
	f := &follower{m: newMatcher(q, wallClock()), queue: make(chan Request, queueSize)}
	if !r.enter(f) {
		return nil, ErrFollowers
	}
	return &Subscription{r, f}, nil
}

// Close ends a subscription that does not Run.
func (s *Subscription) Close() { s.ring.leave(s.f) }

// Run calls each with requests soon after they have ended, until ctx is done, each returns
// false or the ring is retired. A slow follower does not delay others: it gets the number
// of requests that it has missed.
func (s *Subscription) Run(ctx context.Context, each func(Live) bool) {
	r, f := s.ring, s.f
	defer r.leave(f)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.retired:
			return
		case request := <-f.queue:
			if !each(Live{Request: request}) {
				return
			}
		}
		if missed := r.missed(f); missed > 0 && len(f.queue) == 0 && !each(Live{Missed: missed}) {
			return
		}
	}
}

// missed returns what f has missed, once it has read what was there before.
func (r *Ring) missed(f *follower) uint64 {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if len(f.queue) > 0 {
		return 0
	}
	n := f.missed
	f.missed = 0
	return n
}

// enter adds a follower. The first one starts the poller.
func (r *Ring) enter(f *follower) bool {
	for {
		r.live.mu.Lock()
		if len(r.live.mu.all) >= maxFollowers {
			r.live.mu.Unlock()
			return false
		}
		if ended := r.live.mu.ended; ended != nil && len(r.live.mu.all) == 0 {
			r.live.mu.Unlock()
			<-ended // the last poller is about to end
			continue
		}
		if r.live.mu.all == nil {
			r.live.mu.all = map[*follower]bool{}
		}
		r.live.mu.all[f] = true
		if r.live.mu.ended == nil {
			r.live.mu.ended = make(chan struct{})
			c := r.newCursor()
			go r.poll(c)
		}
		r.live.mu.Unlock()
		return true
	}
}

// leave removes a follower, and waits for the poller to end if it was the last.
func (r *Ring) leave(f *follower) {
	r.live.mu.Lock()
	delete(r.live.mu.all, f)
	last, ended := len(r.live.mu.all) == 0, r.live.mu.ended
	r.live.mu.Unlock()
	if last && ended != nil {
		<-ended
	}
}

// poll hands new records to the followers until there are none.
func (r *Ring) poll(c *cursor) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for range ticker.C {
		if !r.pollOnce(c) {
			return
		}
	}
}

// pollOnce returns false when there are no followers any more.
func (r *Ring) pollOnce(c *cursor) bool {
	parts := r.hold(c.from)
	defer r.release(parts)
	unread, lost := c.advance(parts)
	fresh := inOrder(unread)
	wall := wallClock()
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if len(r.live.mu.all) == 0 {
		close(r.live.mu.ended)
		r.live.mu.ended = nil
		return false
	}
	for f := range r.live.mu.all {
		f.missed += lost
		for _, v := range fresh {
			if f.m.matches(v.v) {
				f.offer(v.v, wall)
			}
		}
	}
	return true
}

// inOrder returns the records of several lanes in the order in which they ended.
func inOrder(fresh [][]byte) []found {
	var all []found
	for _, rest := range fresh {
		for len(rest) > 0 {
			var v view
			v, rest = next(rest)
			all = append(all, found{Cursor{v.end(), v.number()}, v})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.at.End, b.at.End) })
	return all
}

// offer puts a record into the queue, or counts it as missed.
func (f *follower) offer(v view, wall int64) {
	if len(f.queue) == cap(f.queue) {
		f.missed++
		return
	}
	f.queue <- v.read(wall) // only the poller sends, so the queue is not full
}

// cursor is how far the poller has read.
type cursor struct {
	from   uint64 // the oldest chunk that may have more
	newest uint64 // the newest chunk that was seen
	read   map[uint64]mark
}

// mark is how far a chunk was read, and whether more was to follow.
type mark struct {
	at   int
	open bool
}

// newCursor returns a cursor at the end of what is there.
func (r *Ring) newCursor() *cursor {
	parts := r.hold(0)
	defer r.release(parts)
	c := &cursor{}
	for _, p := range parts {
		c.newest = max(c.newest, p.order)
	}
	c.advance(parts)
	return c
}

// advance returns the bytes of the parts that were not read yet. Lost counts the
// chunks that were overwritten before they were read to their end.
func (c *cursor) advance(parts []part) (fresh [][]byte, lost uint64) {
	read := make(map[uint64]mark, len(parts))
	newest, present := c.newest, 0
	for _, p := range parts {
		if p.order > c.newest {
			present++
		}
		newest = max(newest, p.order)
		if at := c.read[p.order].at; len(p.buf) > at {
			fresh = append(fresh, p.buf[at:])
		}
		read[p.order] = mark{len(p.buf), p.open}
	}
	lost = newest - c.newest - uint64(present)
	for order, m := range c.read {
		if _, still := read[order]; m.open && !still {
			lost++
		}
	}
	c.from = newest + 1
	for order, m := range read {
		if m.open {
			c.from = min(c.from, order)
		}
	}
	c.newest, c.read = newest, read
	return fresh, lost
}
