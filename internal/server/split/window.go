package split

import (
	"sync/atomic"
	"time"

	"headgate/internal/server/times"
)

// slots is the size of a window: it has slots of equal time, each with a histogram.
const slots = 20

// slot is what was counted in a twentieth of the window.
type slot struct {
	errors atomic.Uint32
	times  [times.Buckets]atomic.Uint32 // of the requests that were answered
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
	s.times[times.Bucket(took)].Add(1)
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
	times            times.Counts
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
	out.answered = out.times.Total()
	out.requests = out.errors + out.answered
	return out
}
