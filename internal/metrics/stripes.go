package metrics

import (
	"sync"
	"sync/atomic"
)

// hotAfter is the count in one cell after which a handle uses one cell per
// processor. Ten thousand routes with little traffic need little memory that
// way.
const hotAfter = 1000

// stripes keeps the numbers of one handle in one cell while it is seldom used,
// and in about one cell a processor when it is used much.
type stripes[N any] struct {
	first atomic.Pointer[cell[N]]
	// more is there when the handle is used much.
	more atomic.Pointer[[]atomic.Pointer[cell[N]]]
}

// cell is a part of the numbers of a handle, guarded by its lock. Of very many routes each
// request counts in other cells, so that it has to wait for their memory: what is counted
// with every request is in as few cache lines as can be.
type cell[N any] struct {
	sync.Mutex
	low  uint32 // how often was counted in the cell, and
	high uint16 // how often low was full
	told bool   // that something was counted since the last sample
	n    N
}

// times is how often was counted in the cell.
func (c *cell[N]) times() uint64 { return uint64(c.high)<<32 | uint64(c.low) }

// spaced is a cell that many count in: on cache lines of its own, and off its neighbours.
type spaced[N any] struct {
	cell[N]
	_ [128]byte
}

// counting is a handle that has cells.
type counting interface {
	owner() *Registry
	// touched is called for the first count in a cell since a sample.
	touched()
}

// lock returns the cell to count in, locked, and the token to pass to unlock.
// The token is nil while all processors use the first cell. A processor that
// finds its cell locked acquires another token, and keeps it, so that no two
// stay on one cell.
func (s *stripes[N]) lock(of counting) (*cell[N], *token) {
	more := s.more.Load()
	if more == nil {
		c := made(&s.first, newCell[N])
		c.Lock()
		return c, nil
	}
	r := of.owner()
	t := r.tokens.Get().(*token)
	c := made(&(*more)[t.index], newSpaced[N])
	if !c.TryLock() {
		t = r.nextToken()
		c = made(&(*more)[t.index], newSpaced[N])
		c.Lock()
	}
	return c, t
}

// unlock ends what lock started.
func (s *stripes[N]) unlock(of counting, c *cell[N], t *token) {
	if c.low++; c.low == 0 {
		c.high++
	}
	hot, told := c.times() == hotAfter, c.told
	c.told = true
	c.Unlock()
	if t != nil {
		of.owner().tokens.Put(t)
	} else if hot {
		more := make([]atomic.Pointer[cell[N]], len(of.owner().all))
		s.more.Store(&more)
	}
	if !told {
		of.touched()
	}
}

// made returns the cell at p and makes it when it is first used.
func made[N any](p *atomic.Pointer[cell[N]], fresh func() *cell[N]) *cell[N] {
	if c := p.Load(); c != nil {
		return c
	}
	c := fresh()
	if !p.CompareAndSwap(nil, c) {
		return p.Load()
	}
	return c
}

func newCell[N any]() *cell[N]   { return new(cell[N]) }
func newSpaced[N any]() *cell[N] { return &new(spaced[N]).cell }

// each calls f with every cell that was used, locked.
func (s *stripes[N]) each(f func(*cell[N])) {
	visit := func(p *atomic.Pointer[cell[N]]) {
		if c := p.Load(); c != nil {
			c.Lock()
			f(c)
			c.Unlock()
		}
	}
	visit(&s.first)
	if more := s.more.Load(); more != nil {
		for i := range *more {
			visit(&(*more)[i])
		}
	}
}
