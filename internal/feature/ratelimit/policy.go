package ratelimit

import "time"

// policy is the arithmetic of the limit: the generic cell rate algorithm (GCRA)
// in whole nanoseconds. For each client one moment is kept, its mark: when its
// bucket will be full again. A request moves the mark on by interval, and
// conforms when the mark is then no further away than burst intervals.
type policy struct {
	// interval is the time in which one request comes back: period/requests,
	// rounded down to a nanosecond. At a million requests a second, the most
	// that can be set, it is a thousand of them.
	interval int64
	// burst is how many requests fit into a full bucket.
	burst int
	// tolerance is the time in which an empty bucket fills up.
	tolerance int64
}

func newPolicy(c *Config) policy {
	p := policy{interval: int64(c.Period.D()) / int64(c.Requests), burst: c.Burst}
	if p.burst == 0 {
		p.burst = c.Requests
	}
	p.tolerance = p.interval * int64(p.burst)
	return p
}

// take is one request at the moment now by a client with this mark. It returns
// the new mark, and 0 when the request conforms; otherwise the old mark and how
// long the client has to wait.
func (p *policy) take(mark, now int64) (next, wait int64) {
	next = max(mark, now) + p.interval
	if wait = next - now - p.tolerance; wait > 0 {
		return mark, wait
	}
	return next, 0
}

// left returns how many requests a client with this mark may make at once.
func (p *policy) left(mark, now int64) int {
	return int((p.tolerance - max(mark-now, 0)) / p.interval)
}

// seconds returns a time in whole seconds, rounded up.
func seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
