package metrics

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// track is one scope of a series.
type track struct {
	fine, coarse points
	// minute is what was counted in the coarse step that is under way.
	minute *difference
	at     int64 // the coarse step of minute
}

// add keeps what was counted within a fine step.
func (t *track) add(step int64, d *difference) {
	p := d.Point
	p.P50, p.P99 = d.durations.quantiles()
	t.fine.add(step, p)
	t.close(step - 1)
	if t.minute == nil {
		t.minute, t.at = &difference{}, step/coarseSteps
	}
	t.minute.join(d)
	t.close(step)
}

// close keeps the coarse step that is under way if it ended with a fine step or before.
func (t *track) close(step int64) {
	if t.minute == nil || (step+1)/coarseSteps <= t.at {
		return
	}
	p := t.minute.Point
	p.P50, p.P99 = t.minute.durations.quantiles()
	t.coarse.add(t.at, p)
	t.minute = nil
}

func (t *track) empty() bool {
	return t.minute == nil && len(t.fine.chunks) == 0 && len(t.coarse.chunks) == 0
}

// memory returns about how many bytes the track takes.
func (t *track) memory() int {
	n := int(unsafe.Sizeof(*t)) + 128 + t.fine.memory() + t.coarse.memory() // 128 for its place in the map
	if t.minute != nil {
		n += int(unsafe.Sizeof(*t.minute))
	}
	return n
}

// recent returns the sum of the last fine steps.
func (t *track) recent(now int64) Point {
	var sum Point
	t.fine.each(now-int64(RecentPeriod/FineStep)+1, func(_ int64, p Point) { sum.join(p) })
	return sum
}

// chunkPoints is how many points a chunk has. The oldest chunk is dropped whole.
const chunkPoints = 32

// points are points of the steps in which something happened, in order. Each takes about
// sixteen bytes.
type points struct {
	chunks []chunk
}

// chunk is a run of points: for each the steps since the one before, and its numbers.
type chunk struct {
	first, last int64
	count       int
	data        []byte
}

// add appends the point of a step, which is later than those before.
func (ps *points) add(step int64, p Point) {
	n := len(ps.chunks)
	if n == 0 || ps.chunks[n-1].count == chunkPoints {
		ps.chunks = append(ps.chunks, chunk{first: step, last: step})
		n++
	}
	c := &ps.chunks[n-1]
	for _, v := range [...]uint64{
		uint64(step - c.last), p.Requests, p.ClientErrors, p.ServerErrors, p.CacheHits, p.Received, p.Sent,
		uint64(p.P50 / time.Microsecond), uint64(p.P99 / time.Microsecond),
	} {
		c.data = binary.AppendUvarint(c.data, v)
	}
	c.last = step
	c.count++
}

// drop forgets the chunks that end before a step.
func (ps *points) drop(before int64) {
	n := 0
	for n < len(ps.chunks) && ps.chunks[n].last <= before {
		n++
	}
	if n > 0 {
		ps.chunks = append(ps.chunks[:0:0], ps.chunks[n:]...)
	}
}

// each calls f with the points from a step on.
func (ps *points) each(from int64, f func(step int64, p Point)) {
	for i := range ps.chunks {
		if c := &ps.chunks[i]; c.last >= from {
			c.each(from, f)
		}
	}
}

func (c *chunk) each(from int64, f func(step int64, p Point)) {
	step, data := c.first, c.data
	next := func() uint64 {
		v, n := binary.Uvarint(data)
		data = data[n:]
		return v
	}
	for len(data) > 0 {
		step += int64(next())
		p := Point{Requests: next(), ClientErrors: next(), ServerErrors: next(), CacheHits: next(), Received: next(), Sent: next()}
		p.P50, p.P99 = time.Duration(next())*time.Microsecond, time.Duration(next())*time.Microsecond
		if step >= from {
			f(step, p)
		}
	}
}

func (ps *points) memory() int {
	n := cap(ps.chunks) * int(unsafe.Sizeof(chunk{}))
	for i := range ps.chunks {
		n += cap(ps.chunks[i].data)
	}
	return n
}

// spread are durations by the native buckets of a histogram; the first counts those that
// are too short for one.
type spread [1 + highest - lowestKey + 1]uint32

// since is what was counted between two sums, which may have wrapped around.
func (s *spread) since(now, before *spread) {
	for i := range s {
		s[i] = now[i] - before[i]
	}
}

func (s *spread) join(o *spread) {
	for i := range s {
		s[i] += o[i]
	}
}

// quantiles returns the median and the 99th percentile, zero without any duration.
func (s *spread) quantiles() (p50, p99 time.Duration) {
	var count uint64
	for _, n := range s {
		count += uint64(n)
	}
	if count == 0 {
		return 0, 0
	}
	return s.quantile(0.5, count), s.quantile(0.99, count)
}

// quantile returns a quantile, which is thought to lie within its bucket where an even
// spread of the logarithms puts it.
func (s *spread) quantile(q float64, count uint64) time.Duration {
	rank, below := q*float64(count), 0.0
	for i, n := range s {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		key := float64(i - 1 + lowestKey) // the bucket ends at 2^(key/4) seconds
		if i == 0 {
			key = lowestKey - 1
		}
		within := (rank - below) / float64(n)
		return max(time.Duration(math.Exp2((key-1+within)/(1<<schema))*float64(time.Second)), time.Microsecond)
	}
	return 0
}
