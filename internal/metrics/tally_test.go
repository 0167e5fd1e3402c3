package metrics

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// histogramOf is what a tally makes of durations.
func histogramOf(all ...time.Duration) *histogram {
	var t tally
	for _, d := range all {
		t.add(d)
	}
	h := &histogram{}
	t.joinTo(h)
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
	var o outcomes
	statuses := []int{200, 204, 301, 404, 500, 502, 777, 0}
	for round := range 3 {
		for _, method := range methodNames {
			for _, status := range statuses {
				o.count(method, status)
			}
		}
		var all []outcome
		for one := range o.all() {
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
