package metrics

import (
	"sync"
	"sync/atomic"
)

// hotAfter is how often one cell is counted in before a handle uses one cell a
// processor. Ten thousand routes that are seldom asked need little memory that
// way.
const hotAfter = 1000

// stripes keeps the numbers of one handle in one cell while it is seldom used,
// and in about one cell a processor when it is used much.
type stripes[N any] struct {
	first atomic.Pointer[cell[N]]
	// more is there when the handle is used much.
	more atomic.Pointer[[]atomic.Pointer[cell[N]]]
}

// cell is a part of the numbers of a handle, guarded by its lock.
type cell[N any] struct {
	sync.Mutex
	n N
}

// spaced is a cell that many count in: on cache lines of its own, and off its neighbours.
type spaced[N any] struct {
	cell[N]
	_ [128]byte
}

// lock returns the cell to count in, locked, and the token that unlock wants
// back. The token is nil while all processors use the first cell. A processor
// that finds its cell locked takes another token, and keeps it: so no two stay
// on one cell.
func (s *stripes[N]) lock(r *Registry) (*cell[N], *token) {
	more := s.more.Load()
	if more == nil {
		c := made(&s.first, newCell[N])
		c.Lock()
		return c, nil
	}
	t := r.tokens.Get().(*token)
	c := made(&(*more)[t.index], newSpaced[N])
	if !c.TryLock() {
		t = r.nextToken()
		c = made(&(*more)[t.index], newSpaced[N])
		c.Lock()
	}
	return c, t
}

// unlock ends what lock began. count is how often was counted in the cell.
func (s *stripes[N]) unlock(r *Registry, c *cell[N], t *token, count uint64) {
	c.Unlock()
	if t != nil {
		r.tokens.Put(t)
	} else if count == hotAfter {
		more := make([]atomic.Pointer[cell[N]], len(r.all))
		s.more.Store(&more)
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

// each calls f with the numbers of every cell that was used.
func (s *stripes[N]) each(f func(*N)) {
	visit := func(p *atomic.Pointer[cell[N]]) {
		if c := p.Load(); c != nil {
			c.Lock()
			f(&c.n)
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
