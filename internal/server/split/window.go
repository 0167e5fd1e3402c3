package split

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The size of a window: it has slots of equal time, each with a histogram of times whose
// buckets are an eighth of a power of two wide, from 1 µs to 4 minutes.
const (
	slots   = 20
	octaves = 26
	buckets = octaves << 3
)

// slot is what was counted in a twentieth of the window.
type slot struct {
	errors atomic.Uint32
	times  [buckets]atomic.Uint32 // of the requests that were answered
}

// window is a ring of slots. Any number of goroutines count, one moves it on.
type window struct {
	at    atomic.Uint32 // the slot that is counted in
	slots [slots]slot
}

// observe counts a request.
func (w *window) observe(failed bool, took time.Duration) {
	s := &w.slots[w.at.Load()%slots]
	if failed {
		s.errors.Add(1)
		return
	}
	s.times[bucketOf(took)].Add(1)
}

// move starts the next slot. What was in it a window ago is forgotten.
func (w *window) move() {
	next := (w.at.Load() + 1) % slots
	w.slots[next].clear()
	w.at.Store(next)
}

// clear forgets everything.
func (w *window) clear() {
	for i := range w.slots {
		w.slots[i].clear()
	}
}

func (s *slot) clear() {
	s.errors.Store(0)
	for i := range s.times {
		s.times[i].Store(0)
	}
}

// sums are the counts of a window.
type sums struct {
	errors, requests uint64
	times            [buckets]uint64
	answered         uint64
}

// sum adds up the slots.
func (w *window) sum() (out sums) {
	for i := range w.slots {
		s := &w.slots[i]
		out.errors += uint64(s.errors.Load())
		for b := range s.times {
			out.times[b] += uint64(s.times[b].Load())
		}
	}
	for _, n := range out.times {
		out.answered += n
	}
	out.requests = out.errors + out.answered
	return out
}

// bucketOf returns the bucket of a time.
func bucketOf(took time.Duration) int {
	us := uint64(max(took, 0) / time.Microsecond)
	if us < 8 {
		return int(us)
	}
	octave := bits.Len64(us) - 1
	return min((octave-2)<<3+int(us>>(octave-3)&7), buckets-1)
}

// bound returns the shortest time of a bucket.
func bound(bucket int) time.Duration {
	if bucket < 8 {
		return time.Duration(bucket) * time.Microsecond
	}
	return time.Duration(8+bucket&7) << (bucket>>3 - 1) * time.Microsecond
}

// atRank returns the time of the request with a rank, counted from 0 in order of their
// times, interpolated within its bucket.
func (s *sums) atRank(rank float64) time.Duration {
	before := 0.0
	for b, n := range s.times {
		if n == 0 {
			continue
		}
		if before+float64(n) > rank {
			part := (max(rank, 0) - before + 0.5) / float64(n)
			low := bound(b)
			return low + time.Duration(min(part, 1)*float64(bound(b+1)-low))
		}
		before += float64(n)
	}
	for b := buckets - 1; b >= 0; b-- {
		if s.times[b] > 0 {
			return bound(b + 1)
		}
	}
	return 0
}
