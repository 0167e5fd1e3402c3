package metrics

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// The two resolutions of a Series, and how far back each goes.
const (
	FineStep     = 10 * time.Second
	FinePeriod   = time.Hour
	CoarseStep   = time.Minute
	CoarsePeriod = 24 * time.Hour
	// RecentPeriod is the time that Recent covers.
	RecentPeriod = 5 * time.Minute
)

// DefaultSeriesMemory is the maximum memory of the points of a Series.
const DefaultSeriesMemory = 64 << 20

// Scope is what a line of a series is about. The zero Scope is the whole.
type Scope struct {
	// Kind is proxies, tcp_proxies or udp_proxies; "" is the whole.
	Kind string
	// Proxy is the name of the proxy.
	Proxy string
	// Server is the address of one of its servers, "" for the proxy itself. For ScopeCache it
	// is the route.
	Server string
}

// The kinds of a Scope.
const (
	ScopeHTTP = "proxies"
	ScopeTCP  = "tcp_proxies"
	ScopeUDP  = "udp_proxies"
	// ScopeCache is the cache of a route: requests that reached it, and its hits.
	ScopeCache = "caches"
)

// Point contains what happened within one step.
type Point struct {
	// Requests are the requests that ended: those of a proxy, the attempts at a server,
	// the connections or sessions that started at a TCP or UDP proxy.
	Requests uint64
	// ClientErrors and ServerErrors are those with a status 4xx and 5xx; at a server,
	// ServerErrors are attempts without a response, and for TCP and UDP proxies
	// failed connections or sessions.
	ClientErrors, ServerErrors uint64
	// CacheHits are the requests that a cache answered without the server's body.
	CacheHits uint64
	// Received and Sent are bytes of bodies from and to clients.
	Received, Sent uint64
	// P50 and P99 are quantiles of the duration, with an error of at most a tenth; zero
	// where no duration is known.
	P50, P99 time.Duration
}

// Series keeps counts over time, for charts. A sample reads the counters every ten seconds,
// which does not affect counting. Intervals without events use no memory. It is safe for
// concurrent use.
type Series struct {
	registry *Registry
	limit    int

	// sampling is held for the whole of a sample.
	sampling struct {
		sync.Mutex
		last int64 // the fine step that was sampled last
	}

	mu struct {
		sync.RWMutex
		began  int64 // the first fine step
		now    int64 // the fine step that was sampled last
		tracks map[Scope]*track
		made   uint64 // tracks, ever
		memory int
		// share is which part of the periods is kept, so that the memory is enough.
		share float64
	}
}

// NewSeries returns a series without points. limit is the maximum memory of the
// points, 0 for DefaultSeriesMemory.
func NewSeries(r *Registry, limit int) *Series {
	s := &Series{registry: r, limit: cmp.Or(limit, DefaultSeriesMemory)}
	s.mu.tracks, s.mu.share = map[Scope]*track{}, 1
	return s
}

// Run takes samples until ctx ends.
func (s *Series) Run(ctx context.Context) {
	s.Sample(time.Now())
	for {
		now := time.Now()
		timer := time.NewTimer(now.Truncate(FineStep).Add(FineStep).Sub(now))
		select {
		case <-timer.C:
			s.Sample(time.Now())
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Sample reads the counters and stores what was counted since the previous sample, as
// what happened within the step that has just ended. The first sample only records the
// values.
func (s *Series) Sample(now time.Time) {
	s.sampling.Lock()
	defer s.sampling.Unlock()
	step := now.Unix()/int64(FineStep/time.Second) - 1
	first := s.sampling.last == 0 || step < s.sampling.last-coarseSteps // the clock was set back
	if !first && step <= s.sampling.last {
		return
	}
	s.sampling.last = step
	if first {
		s.snapshot(step)
		return
	}
	touched := s.registry.takeTouched()
	whole := s.sampleRoutes(step, touched.routes)
	s.sampleServers(step, touched.servers)
	s.sampleStreams(step)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.now = step
	if whole.Requests > 0 {
		s.trackLocked(Scope{}).add(step, whole)
	}
	s.tidyLocked(step)
}

func (s *Series) trackLocked(scope Scope) *track {
	t := s.mu.tracks[scope]
	if t == nil {
		s.mu.made++
		t = &track{number: s.mu.made}
		s.mu.tracks[scope] = t
	}
	return t
}

// coarseSteps is how many fine steps are a coarse one.
const coarseSteps = int64(CoarseStep / FineStep)

// tidyLocked ends the minutes that are over, and drops what is too old, or too much.
func (s *Series) tidyLocked(step int64) {
	s.mu.memory = 0
	fine := step - int64(float64(FinePeriod/FineStep)*s.mu.share)
	coarse := step/coarseSteps - int64(float64(CoarsePeriod/CoarseStep)*s.mu.share)
	for scope, t := range s.mu.tracks {
		t.close(step)
		t.fine.drop(fine)
		t.coarse.drop(coarse)
		if t.empty() {
			t.dropped = true
			delete(s.mu.tracks, scope)
			continue
		}
		s.mu.memory += t.memory()
	}
	switch {
	case s.mu.memory > s.limit:
		s.mu.share = max(s.mu.share*0.8, 0.01)
	case s.mu.memory < s.limit/2 && s.mu.share < 1:
		s.mu.share = min(s.mu.share*1.05, 1)
	}
}

// Line is a part of a series.
type Line struct {
	// Step is the duration of a point.
	Step time.Duration
	// Begin is the start of the first point. Nothing is kept before it.
	Begin time.Time
	// Points are the points, without gaps.
	Points []Point
}

// Find returns the points of a scope from a time on, up to the last whole step.
// Unknown steps at the start are left out; a scope in which nothing happened has
// points of zeros.
func (s *Series) Find(scope Scope, from time.Time, step time.Duration) Line {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ratio := int64(1)
	if step == CoarseStep {
		ratio = coarseSteps
	} else {
		step = FineStep
	}
	end := (s.mu.now + 1) / ratio
	begin := max(from.Unix()/int64(step/time.Second), s.keptLocked(step), (s.mu.began+ratio-1)/ratio)
	line := Line{Step: step, Begin: time.Unix(begin*int64(step/time.Second), 0).UTC(), Points: []Point{}}
	if s.mu.now == 0 || begin >= end {
		return line
	}
	line.Points = make([]Point, end-begin)
	if t := s.mu.tracks[scope]; t != nil {
		points := &t.fine
		if ratio > 1 {
			points = &t.coarse
		}
		points.each(begin, func(at int64, p Point) {
			if at < end {
				line.Points[at-begin] = p
			}
		})
	}
	return line
}

// keptLocked returns the first step of a resolution that is kept.
func (s *Series) keptLocked(step time.Duration) int64 {
	if step == CoarseStep {
		return s.mu.now/coarseSteps - int64(float64(CoarsePeriod/CoarseStep)*s.mu.share) + 1
	}
	return s.mu.now - int64(float64(FinePeriod/FineStep)*s.mu.share) + 1
}

// Recent returns what happened in a scope within the last RecentPeriod. It has no
// quantiles.
func (s *Series) Recent(scope Scope) Point {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.mu.tracks[scope]; t != nil {
		return t.recent(s.mu.now)
	}
	return Point{}
}

// Memory returns the size of the points, in bytes.
func (s *Series) Memory() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.memory
}
