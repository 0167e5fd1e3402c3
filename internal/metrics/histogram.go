package metrics

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// bounds are the upper bounds of the classic buckets: few, because every route
// has them. Readers that support native histograms get finer ones.
var bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	100 * time.Millisecond, 500 * time.Millisecond, 2500 * time.Millisecond, 10 * time.Second,
}

// The native buckets: schema 2 has four buckets for each power of two. Bucket k
// ends at 2^(k/4) seconds. Durations below 2^-17 s (7.6 µs) count as zero,
// those above 2^17 s (36 h) are in the last bucket.
const (
	schema    = 2
	lowestExp = -17
	lowestKey = lowestExp<<schema + 1
	highest   = 17 << schema
)

// quarters are the bounds of the buckets within a power of two, as fractions
// of math.Frexp.
var quarters = [...]float64{0.5, 0.5946035575013605, 0.7071067811865475, 0.8408964152537144}

// histogram is how many durations there were, as a page shows it. What counts is a tally.
type histogram struct {
	count   uint64
	sum     uint64 // nanoseconds
	classic [len(bounds)]uint64
	zero    uint64
	native  [highest - lowestKey + 1]uint64
}

// nativeKey returns the number of the native bucket that d belongs to.
func nativeKey(d time.Duration) int {
	if d <= 0 {
		return math.MinInt
	}
	// What math.Frexp does, for numbers that are never subnormal.
	bits := math.Float64bits(float64(d) * 1e-9)
	exponent := int(bits>>52) - 1023
	fraction := math.Float64frombits(bits&(1<<52-1) | 1022<<52)
	i := 0
	for i < len(quarters) && quarters[i] < fraction {
		i++
	}
	return i + exponent<<schema
}

// write puts both forms of the histogram into out.
func (h *histogram) write(out *dto.Histogram) {
	out.SampleCount = new(h.count)
	out.SampleSum = new(float64(h.sum) / float64(time.Second))
	var below uint64
	for i, n := range h.classic {
		below += n
		out.Bucket = append(out.Bucket, &dto.Bucket{CumulativeCount: new(below), UpperBound: new(bounds[i].Seconds())})
	}
	out.Schema = new(int32(schema))
	out.ZeroThreshold = new(math.Ldexp(1, lowestExp))
	out.ZeroCount = new(h.zero)
	h.writeNative(out)
}

// writeNative writes the native buckets that are not empty as spans: runs of
// buckets, each count as the difference to the one before it.
func (h *histogram) writeNative(out *dto.Histogram) {
	next, before := 0, int64(0)
	var span *dto.BucketSpan
	for i, n := range h.native {
		if n == 0 {
			continue
		}
		key := i + lowestKey
		if span == nil || key != next {
			span = &dto.BucketSpan{Offset: new(int32(key - next)), Length: new(uint32(0))}
			out.PositiveSpan = append(out.PositiveSpan, span)
		}
		*span.Length++
		out.PositiveDelta = append(out.PositiveDelta, int64(n)-before)
		before, next = int64(n), key+1
	}
	if span == nil {
		// A span without buckets marks this histogram as native even while it
		// is empty.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
}
