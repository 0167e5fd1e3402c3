package listen

import (
	"math"
	"sync"
	"sync/atomic"
)

// Limit limits the open connections of several sockets together. Each socket has a reserve
// that others cannot use, so that a crowd at one does not block the others; the rest is
// shared in order of arrival.
type Limit struct {
	mu struct {
		sync.Mutex
		total    int // of all shares; 0 is no bound
		reserved int // the sum of the reserves
		common   int // how many connections are beyond the reserve of their share
		shares   map[*Share]struct{}
		news     chan struct{} // closed when there may be capacity; nil without waiters
	}
}

// Share is what one socket has of a Limit.
type Share struct {
	limit *Limit
	told  func(full bool)
	full  atomic.Bool

	// guarded by the limit's mu
	max     int // connections of this share; 0 is no bound of its own
	reserve int
	open    int
	of      *conns // the socket; nil if its connections are never closed for others
}

// NewShare returns the share of another socket, with no limit of its own and no
// reserve before Divide. told, which may be nil, is called when the share is
// exhausted and a connection waits, and when it is no longer exhausted. It must not
// call the limit.
func (l *Limit) NewShare(told func(full bool)) *Share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Share{limit: l, told: told}
	if l.mu.shares == nil {
		l.mu.shares = map[*Share]struct{}{}
	}
	l.mu.shares[s] = struct{}{}
	return s
}

// Divide sets how many connections all shares may have together, 0 for no bound, and
// how many each by itself: those of max, 0 for no bound of its own. Half of the
// total is divided among these as their reserves. Shares that are not named have
// none.
func (l *Limit) Divide(total int, max map[*Share]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.total, l.mu.reserved, l.mu.common = total, 0, 0
	for s := range l.mu.shares {
		s.max, s.reserve = 0, 0
		if most, named := max[s]; named {
			s.max, s.reserve = most, total/2/len(max)
			if most > 0 {
				s.reserve = min(s.reserve, most)
			}
			l.mu.reserved += s.reserve
		}
		l.mu.common += beyond(s)
	}
	l.newsLocked()
}

// beyond returns how many connections a share has beyond its reserve.
func beyond(s *Share) int {
	if s.open > s.reserve {
		return s.open - s.reserve
	}
	return 0
}

// easing is the part of a bound, one in so many, that has to be free before a share
// that was full is full no more: one that closes idle connections for new ones stays at
// its bound.
const easing = 16

// newsLocked wakes up those that wait for capacity.
func (l *Limit) newsLocked() {
	for s := range l.mu.shares {
		if s.full.Load() && s.freeLocked() > s.boundLocked()/easing {
			s.turn(false)
		}
	}
	if l.mu.news != nil {
		close(l.mu.news)
		l.mu.news = nil
	}
}

// turn notes whether the share is full.
func (s *Share) turn(full bool) {
	if s.full.Swap(full) != full && s.told != nil {
		s.told(full)
	}
}

// Full reports whether there was no capacity for a connection a moment ago: it waits,
// was refused, or another one was closed for it.
func (s *Share) Full() bool { return s.full.Load() }

// freeLocked returns how many more connections are allowed.
func (s *Share) freeLocked() int {
	l, free := s.limit, math.MaxInt
	if l.mu.total > 0 {
		free = max(s.reserve-s.open, 0) + max(l.mu.total-l.mu.reserved-l.mu.common, 0)
	}
	if s.max > 0 {
		free = min(free, s.max-s.open)
	}
	return free
}

// boundLocked returns how many connections the share may have if all others have what
// is reserved for them; 0 is no bound.
func (s *Share) boundLocked() int {
	l, bound := s.limit, s.max
	if all := l.mu.total - l.mu.reserved + s.reserve; l.mu.total > 0 && (bound == 0 || all < bound) {
		bound = all
	}
	return bound
}

// room reports whether another connection is allowed. If not, it returns a
// channel that is closed when one may be.
func (s *Share) room() (news <-chan struct{}, ok bool) {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.freeLocked() > 0 {
		return nil, true
	}
	s.turn(true)
	if l.mu.news == nil {
		l.mu.news = make(chan struct{})
	}
	return l.mu.news, false
}

// add counts a connection, within the limit or not.
func (s *Share) add() {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.open++; s.open > s.reserve {
		l.mu.common++
	}
}

// remove counts the end of a connection.
func (s *Share) remove() {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.open > s.reserve {
		l.mu.common--
	}
	s.open--
	if l.mu.news != nil || s.full.Load() {
		l.newsLocked()
	}
}

// recheck lets the socket of the share look again whether it has to wait.
func (s *Share) recheck() {
	s.limit.mu.Lock()
	defer s.limit.mu.Unlock()
	s.limit.newsLocked()
}

// Leave removes the share of a closed socket from the limit. It may be called again.
func (s *Share) Leave() {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mu.shares[s]; !ok {
		return
	}
	delete(l.mu.shares, s)
	l.mu.reserved -= s.reserve
	l.mu.common -= beyond(s)
	s.turn(false)
	l.newsLocked()
}

// belong notes whose connections the share counts.
func (s *Share) belong(c *conns) {
	s.limit.mu.Lock()
	defer s.limit.mu.Unlock()
	s.of = c
}
