package metrics

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate/internal/exchange"
)

// histogramOf is what a tally makes of durations.
func histogramOf(all ...time.Duration) *histogram {
	var t tally
	var beyond far
	for _, d := range all {
		if slot, over := t.add(d); over > 0 {
			beyond.add(slot, over)
		}
	}
	h := &histogram{}
	t.joinTo(h, &beyond)
	return h
}

// plainly counts a duration in each of the buckets of a histogram.
func plainly(h *histogram, d time.Duration) {
	h.count++
	h.sum += uint64(d)
	for i := range bounds {
		if d <= bounds[i] {
			h.classic[i]++
			break
		}
	}
	switch key := nativeKey(d); {
	case key < lowestKey:
		h.zero++
	default:
		h.native[min(key, highest)-lowestKey]++
	}
}

// A tally tells the same of all durations as a histogram in which each was counted,
// wherever its slots begin.
func TestATallyIsAHistogram(t *testing.T) {
	near := rapid.Custom(func(t *rapid.T) time.Duration {
		return rapid.SampledFrom(bounds[:]).Draw(t, "bound") + time.Duration(rapid.IntRange(-1, 1).Draw(t, "beside"))
	})
	free := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Uint64Range(0, 1<<62).Draw(t, "long") >> rapid.IntRange(0, 62).Draw(t, "shift"))
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.OneOf(near, free), 0, 40).Draw(t, "durations")
		want := &histogram{}
		for _, d := range all {
			plainly(want, d)
		}
		if got := histogramOf(all...); *got != *want {
			t.Fatalf("%v:\n%v, want\n%v", all, *got, *want)
		}
	})
}

// A number that is too large for its room goes on where there is more of it.
func TestNumbersOutgrowTheirRoom(t *testing.T) {
	all := make([]time.Duration, 3<<8+5)
	for i := range all {
		all[i] = time.Millisecond
	}
	want := &histogram{}
	for _, d := range all {
		plainly(want, d)
	}
	if got := histogramOf(all...); *got != *want {
		t.Errorf("%v, want\n%v", *got, *want)
	}

	var n routeNumbers
	n.outcome("GET", 200)
	n.few[0].n = 1<<32 - 1
	n.outcome("GET", 200)
	n.outcome("GET", 200)
	sum := uint64(0)
	for o := range n.outcomes() {
		sum += o.n
	}
	if sum != 1<<32+1 {
		t.Errorf("%d requests, want %d", sum, 1<<32+1)
	}

	c := cell[serverNumbers]{low: 1<<32 - 1, high: 1}
	h := New(Build{}).Server("", "", "")
	h.cells.first.Store(&c)
	h.Tried(exchange.None, 0)
	if n, _ := h.attempts(); n != 2<<32 {
		t.Errorf("%d attempts, want %d", n, uint64(2<<32))
	}
}

// Every bound of a classic bucket divides a slot of its own, and slots can be counted in
// a byte.
func TestSlotsOfATally(t *testing.T) {
	splits := 0
	for _, at := range slots.split {
		if at != 0 {
			splits++
		}
	}
	if splits != len(bounds) || len(slots.all) > 256 {
		t.Errorf("%d slots are divided, want %d; there are %d", splits, len(bounds), len(slots.all))
	}
}

// More methods and statuses than there is room for are counted like the first.
func TestManyOutcomesAreCounted(t *testing.T) {
	var n routeNumbers
	statuses := []int{200, 204, 301, 404, 500, 502, 777, 0}
	for round := range 3 {
		for _, method := range methodNames {
			for _, status := range statuses {
				n.outcome(method, status)
			}
		}
		var all []outcome
		for one := range n.outcomes() {
			all = append(all, one)
		}
		sum := sumOutcomes(append(all, all...))
		if want := len(methodNames) * (len(statuses) - 1); len(sum) != want { // 777 and 0 are the same
			t.Fatalf("%d pairs, want %d", len(sum), want)
		}
		for _, one := range sum {
			want := uint64(2 * (round + 1))
			if one.status == 0 {
				want *= 2
			}
			if one.n != want {
				t.Errorf("%s %s: %d, want %d", methodNames[one.method], statusNames[one.status], one.n, want)
			}
		}
	}
}
