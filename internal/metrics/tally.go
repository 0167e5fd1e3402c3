package metrics

import "time"

// A tally counts durations as a histogram does, in a fiftieth of its memory: each of the
// many routes of a configuration has one. A slot is a native bucket, or the part of one on
// one side of the bound of a classic bucket, so that both are sums of slots. The slots
// around the first duration have a byte each in the tally; the others are in far.
type tally struct {
	sum  uint64 // nanoseconds
	near [nearSlots]uint8
	low  uint8 // the slot of near[0]
	used bool
}

// far contains the counts that exceed a tally. It is allocated on demand.
type far struct {
	counts []uint64
	low    uint8 // the slot of counts[0]
}

// The initial number of slots, how many of them are below the first duration, and
// the number of slots by which far grows.
const (
	nearSlots  = 28
	belowFirst = 14
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

// add counts a duration. Where over is not 0, so many are to be counted in a slot of what
// is far.
func (t *tally) add(d time.Duration) (slot uint8, over uint64) {
	t.sum += uint64(d)
	i := slots.of(d)
	if !t.used {
		t.used, t.low = true, i-min(i, belowFirst)
	}
	at := i - t.low // below low it wraps around
	if at >= nearSlots {
		return i, 1
	}
	if t.near[at]++; t.near[at] == 0 {
		return i, 1 << 8
	}
	return 0, 0
}

// add counts n durations of a slot.
func (f *far) add(slot uint8, n uint64) {
	if at := int(slot) - int(f.low); at < 0 || at >= len(f.counts) {
		low, end := int(slot)&^(farStep-1), int(slot)&^(farStep-1)+farStep
		if len(f.counts) > 0 {
			low, end = min(low, int(f.low)), max(end, int(f.low)+len(f.counts))
		}
		more := make([]uint64, end-low)
		if len(f.counts) > 0 {
			copy(more[int(f.low)-low:], f.counts)
		}
		f.counts, f.low = more, uint8(low)
	}
	f.counts[slot-f.low] += n
}

// joinTo adds the numbers of t, and of what is far of it, to h.
func (t *tally) joinTo(h *histogram, f *far) {
	h.sum += t.sum
	t.each(f, h.addSlot)
}

// each calls do with the slots that have numbers. A slot may come twice.
func (t *tally) each(f *far, do func(s slot, n uint64)) {
	for i, n := range t.near {
		if n > 0 {
			do(slots.all[int(t.low)+i], uint64(n))
		}
	}
	if f == nil {
		return
	}
	for i, n := range f.counts {
		if n > 0 {
			do(slots.all[int(f.low)+i], n)
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
