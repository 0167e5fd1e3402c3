package metrics

import "time"

// A tally counts durations as a histogram does, in a fifth of its memory: of the many
// routes of a configuration each has one. A slot is a native bucket, or the part of one on
// one side of the bound of a classic bucket, so that both are sums of slots. The slots
// around the first duration have room in the tally, others get it when it is needed.
type tally struct {
	sum    uint64 // nanoseconds
	near   [nearSlots]uint64
	far    []uint64
	used   bool
	low    uint8 // the slot of near[0]
	farLow uint8 // the slot of far[0]
}

// How many slots have room from the beginning, how many of them are below the first
// duration, and of how many slots far grows.
const (
	nearSlots  = 12
	belowFirst = 4
	farStep    = 8
)

// slot is what one number of a tally counts: which native bucket, of which -1 is the one
// of those that are too short, and which classic bucket, of which the last has no bound.
type slot struct{ native, classic int }

// slotTable finds the slot of a duration.
type slotTable struct {
	all []slot
	// first is the first slot of each native bucket, split the bound within the bucket
	// from which on it is the next one; 0 for none.
	first [highest - lowestKey + 2]uint8
	split [highest - lowestKey + 2]time.Duration
}

// slots are the slots of all tallies.
var slots = newSlotTable()

func newSlotTable() *slotTable {
	t := &slotTable{}
	classic := 0
	for i := range t.first {
		t.first[i] = uint8(len(t.all))
		t.all = append(t.all, slot{i - 1, classic})
		if classic < len(bounds) && bucketOf(bounds[classic]) == i {
			t.split[i] = bounds[classic]
			classic++
			t.all = append(t.all, slot{i - 1, classic})
		}
	}
	return t
}

// bucketOf returns the place of a duration's native bucket, 0 for those that are too short.
func bucketOf(d time.Duration) int {
	return min(max(nativeKey(d), lowestKey-1), highest) - lowestKey + 1
}

// of returns the slot of a duration.
func (t *slotTable) of(d time.Duration) uint8 {
	i := bucketOf(d)
	if split := t.split[i]; split != 0 && d > split {
		return t.first[i] + 1
	}
	return t.first[i]
}

func (t *tally) add(d time.Duration) {
	t.sum += uint64(d)
	i := slots.of(d)
	if !t.used {
		t.used, t.low = true, i-min(i, belowFirst)
	}
	if at := i - t.low; at < nearSlots { // below low it wraps around
		t.near[at]++
		return
	}
	t.addFar(i)
}

// addFar counts in a slot that is not near.
func (t *tally) addFar(i uint8) {
	if at := int(i) - int(t.farLow); at < 0 || at >= len(t.far) {
		low, end := int(i)&^(farStep-1), int(i)&^(farStep-1)+farStep
		if len(t.far) > 0 {
			low, end = min(low, int(t.farLow)), max(end, int(t.farLow)+len(t.far))
		}
		more := make([]uint64, end-low)
		if len(t.far) > 0 {
			copy(more[int(t.farLow)-low:], t.far)
		}
		t.far, t.farLow = more, uint8(low)
	}
	t.far[i-t.farLow]++
}

// joinTo adds the numbers of t to h.
func (t *tally) joinTo(h *histogram) {
	h.sum += t.sum
	for i, n := range t.near {
		if n > 0 {
			h.addSlot(slots.all[int(t.low)+i], n)
		}
	}
	for i, n := range t.far {
		if n > 0 {
			h.addSlot(slots.all[int(t.farLow)+i], n)
		}
	}
}

// addSlot adds the number of a slot.
func (h *histogram) addSlot(s slot, n uint64) {
	h.count += n
	if s.classic < len(h.classic) {
		h.classic[s.classic] += n
	}
	if s.native < 0 {
		h.zero += n
	} else {
		h.native[s.native] += n
	}
}
