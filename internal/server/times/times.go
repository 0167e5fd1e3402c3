// Package times counts durations in buckets, and returns their quantiles: how long servers
// take to respond. A bucket is an eighth of a power of two wide, from 1 µs to 4 minutes.
package times

import (
	"math/bits"
	"time"
)

const octaves = 26

// Buckets is the number of buckets.
const Buckets = octaves << 3

// Counts is the number of durations in each bucket. The zero value is empty. It is not safe
// for concurrent use.
type Counts [Buckets]uint64

// Bucket returns the bucket of a duration.
func Bucket(took time.Duration) int {
	us := uint64(max(took, 0) / time.Microsecond)
	if us < 8 {
		return int(us)
	}
	octave := bits.Len64(us) - 1
	return min((octave-2)<<3+int(us>>(octave-3)&7), Buckets-1)
}

// Bound returns the shortest duration of a bucket.
func Bound(bucket int) time.Duration {
	if bucket < 8 {
		return time.Duration(bucket) * time.Microsecond
	}
	return time.Duration(8+bucket&7) << (bucket>>3 - 1) * time.Microsecond
}

// Total returns the number of durations.
func (c *Counts) Total() (n uint64) {
	for _, one := range c {
		n += one
	}
	return n
}

// Quantile returns the duration below which a part of all is, from 0 to 1; 0 if there are
// none.
func (c *Counts) Quantile(part float64) time.Duration {
	n := c.Total()
	return c.AtRank(part * float64(n-min(n, 1)))
}

// AtRank returns the duration with a rank, counted from 0 in their order, interpolated within
// its bucket.
func (c *Counts) AtRank(rank float64) time.Duration {
	before := 0.0
	for b, n := range c {
		if n == 0 {
			continue
		}
		if before+float64(n) > rank {
			part := (max(rank, 0) - before + 0.5) / float64(n)
			low := Bound(b)
			return low + time.Duration(min(part, 1)*float64(Bound(b+1)-low))
		}
		before += float64(n)
	}
	for b := Buckets - 1; b >= 0; b-- {
		if c[b] > 0 {
			return Bound(b + 1)
		}
	}
	return 0
}
