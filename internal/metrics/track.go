package metrics

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// track is one scope of a series.
type track struct {
	number  uint64 // no other track has it
	dropped bool   // it is none of the series' any more

	fine, coarse points
	// minute is what was counted in the coarse step that is under way, if one is.
	minute struct {
		open bool
		at   int64
		Point
		durations narrow
	}
}

// add keeps what was counted within a fine step.
func (t *track) add(step int64, d *difference) {
	p := d.Point
	p.P50, p.P99 = d.durations.quantiles()
	t.fine.add(step, p)
	t.close(step - 1)
	m := &t.minute
	if !m.open {
		m.open, m.at, m.Point = true, step/coarseSteps, Point{}
	}
	m.Point.join(d.Point)
	m.durations.join(&d.durations)
	t.close(step)
}

// close keeps the coarse step that is under way if it ended with a fine step or before.
func (t *track) close(step int64) {
	m := &t.minute
	if !m.open || (step+1)/coarseSteps <= m.at {
		return
	}
	p := m.Point
	p.P50, p.P99 = m.durations.quantiles()
	t.coarse.add(m.at, p)
	m.open, m.durations = false, narrow{}
}

func (t *track) empty() bool {
	return !t.minute.open && len(t.fine.chunks) == 0 && len(t.coarse.chunks) == 0
}

// memory returns the approximate size of the track, in bytes.
func (t *track) memory() int {
	return int(unsafe.Sizeof(*t)) + 128 + t.fine.memory() + t.coarse.memory() + t.minute.durations.memory() // 128 for its place in the map
}

// recent returns the sum of the last fine steps.
func (t *track) recent(now int64) Point {
	var sum Point
	t.fine.each(now-int64(RecentPeriod/FineStep)+1, func(_ int64, p Point) { sum.join(p) })
	return sum
}

// chunkPoints is how many points a chunk has. The oldest chunk is dropped whole.
const chunkPoints = 32

// points are the points of the steps in which something happened, in order. Each has
// about 16 bytes.
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

// narrow is a spread of which only the part is kept that has numbers: there may be very
// many, and each has few.
type narrow struct {
	counts []uint32
	low    uint8 // the bucket of counts[0]
}

// set makes n the same as s.
func (n *narrow) set(s *spread) {
	low, end := s.part()
	if cap(n.counts) < end-low {
		n.counts = make([]uint32, end-low)
	}
	n.counts, n.low = n.counts[:end-low], uint8(low)
	copy(n.counts, s[low:end])
}

// part returns where the numbers of s start and end.
func (s *spread) part() (low, end int) {
	for low < len(s) && s[low] == 0 {
		low++
	}
	if low == len(s) {
		return 0, 0
	}
	for end = len(s); s[end-1] == 0; {
		end--
	}
	return low, end
}

// join adds the numbers of s.
func (n *narrow) join(s *spread) {
	all := *s
	n.addTo(&all)
	n.set(&all)
}

func (n *narrow) addTo(s *spread) {
	for i, count := range n.counts {
		s[int(n.low)+i] += count
	}
}

// takeFrom subtracts the numbers of n from s.
func (n *narrow) takeFrom(s *spread) {
	for i, count := range n.counts {
		s[int(n.low)+i] -= count
	}
}

func (n *narrow) quantiles() (p50, p99 time.Duration) {
	var s spread
	n.addTo(&s)
	return s.quantiles()
}

func (n *narrow) memory() int { return 4 * cap(n.counts) }
