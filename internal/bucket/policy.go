// Package bucket counts how often something was done, for each of many clients,
// and says whether that was too often: policy.go is the arithmetic, table.go the
// memory. What tells clients apart is hashed into a key: seed.go does so for addresses
// and texts. carry.go gives a table to another process.
//
// It knows no requests. Callers bring the moment.
package bucket

import "time"

// Policy is the arithmetic of a limit: the generic cell rate algorithm (GCRA)
// in whole nanoseconds. For each client one moment is kept, its mark: when its
// bucket will be full again. A request moves the mark on by interval, and
// conforms when the mark is then no further away than burst intervals.
type Policy struct {
	// interval is the time in which one request comes back: period/requests,
	// rounded down to a nanosecond. At a million requests a second, the most
	// that can be set, it is a thousand of them.
	interval int64
	// burst is how many requests fit into a full bucket.
	burst int
	// tolerance is the time in which an empty bucket fills up.
	tolerance int64
}

// New returns the policy of so many requests, at least one, in each period, with a
// burst at once; a burst of 0 is as many as requests.
func New(requests int, period time.Duration, burst int) Policy {
	p := Policy{interval: int64(period) / int64(requests), burst: burst}
	if p.burst == 0 {
		p.burst = requests
	}
	p.tolerance = p.interval * int64(p.burst)
	return p
}

// Interval returns the time in which one request comes back, and Burst how many
// requests fit into a full bucket.
func (p *Policy) Interval() time.Duration { return time.Duration(p.interval) }

// Burst returns how many requests fit into a full bucket.
func (p *Policy) Burst() int { return p.burst }

// Refill returns the time in which an empty bucket fills up.
func (p *Policy) Refill() time.Duration { return time.Duration(p.tolerance) }

// conform is one request at the moment now by a client with this mark. It returns
// the new mark, and 0 when the request conforms; otherwise the old mark and how
// long the client has to wait.
func (p *Policy) conform(mark, now int64) (next, wait int64) {
	next = max(mark, now) + p.interval
	if wait = next - now - p.tolerance; wait > 0 {
		return mark, wait
	}
	return next, 0
}

// Left returns how many requests a client with this mark may make at once.
func (p *Policy) Left(mark, now int64) int {
	return int((p.tolerance - max(mark-now, 0)) / p.interval)
}
