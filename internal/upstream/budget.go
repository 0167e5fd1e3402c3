package upstream

import "sync/atomic"

// The span over which a route's requests and retries are counted.
const (
	budgetSlots = 10
	slotLength  = int64(1e9) // a second
)

// freeRetries is how many retries there may be in the span whatever the traffic,
// so that a route with few requests has some.
const freeRetries = 2 * budgetSlots

// budget limits the retries of a route in proportion to its traffic. It
// acquires no lock, and the limit is exact for concurrent callers.
type budget struct {
	share    uint64 // retries for each hundred requests
	requests counts
	retries  counts
}

// request counts a request of a client.
func (b *budget) request(now int64) { b.requests.add(now) }

// spend counts a retry if there may be one.
func (b *budget) spend(now int64) bool {
	// It is counted before the look, so that two at once cannot both be the last.
	b.retries.add(now)
	if b.retries.sum(now) <= freeRetries+b.requests.sum(now)*b.share/100 {
		return true
	}
	b.retries.drop(now)
	return false
}

// giveBack uncounts a retry that was not made.
func (b *budget) giveBack(now int64) { b.retries.drop(now) }

// counts is what was counted in each of the last seconds: the number of the
// second in the upper half of a cell, the count in the lower.
type counts [budgetSlots]atomic.Uint64

func (c *counts) cell(now int64) (*atomic.Uint64, uint32) {
	second := uint32(now / slotLength)
	return &c[second%budgetSlots], second
}

func (c *counts) add(now int64) {
	cell, second := c.cell(now)
	for {
		old := cell.Load()
		if int32(second-uint32(old>>32)) <= 0 {
			cell.Add(1) // of this second, or of a later one
			return
		}
		if cell.CompareAndSwap(old, uint64(second)<<32|1) {
			return
		}
	}
}

func (c *counts) drop(now int64) {
	cell, second := c.cell(now)
	for {
		old := cell.Load()
		if uint32(old>>32) != second || uint32(old) == 0 || cell.CompareAndSwap(old, old-1) {
			return
		}
	}
}

func (c *counts) sum(now int64) (n uint64) {
	second := uint32(now / slotLength)
	for i := range c {
		if v := c[i].Load(); second-uint32(v>>32) < budgetSlots {
			n += uint64(uint32(v))
		}
	}
	return n
}
