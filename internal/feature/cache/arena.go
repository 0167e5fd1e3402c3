package cache

import (
	"math/rand/v2"
	"sync"
)

// The shape of an arena. A page is cut into pieces of one size; the largest is a
// quarter of it, and larger things are several pieces. A small arena has small
// pages, so that there are enough of them for all sizes: about as many as pagesWanted.
const (
	minPage     = 16 << 10 // bytes
	maxPage     = 256 << 10
	pagesWanted = 1 << 8
	pieceParts  = 4
	minPiece    = 128 // bytes
)

// sparePages is how many free pages are kept for the next use.
const sparePages = 4

// arena is memory outside of the collected heap: what is stored in it costs the
// collector nothing, and the process uses what is stored and no second copy that
// waits to be collected. It is safe for use by several goroutines.
type arena struct {
	// constant
	page    int   // size of a page, in bytes
	largest int   // size of the largest piece
	classes []int // sizes of pieces, largest first

	mu struct {
		sync.Mutex
		open   [][]*page // by class: pages with a free piece
		pages  []*page   // in use
		spare  []*page
		closed bool
	}
}

// page is memory cut into pieces of one class.
type page struct {
	mem    []byte
	class  int
	at     int      // in arena.mu.pages
	open   int      // in arena.mu.open, or -1
	free   []uint16 // pieces that came back
	next   int      // the first piece that was never used
	used   int
	owners []uint64 // by piece: the hash of the key that it is stored for
}

// piece is a part of a page.
type piece struct {
	page *page
	slot int
	mem  []byte
}

// newArena returns an arena that is to hold about limit bytes.
func newArena(limit int64) *arena {
	a := &arena{page: minPage}
	for a.page < maxPage && int64(a.page)*pagesWanted < limit {
		a.page *= 2
	}
	a.largest = a.page / pieceParts
	// Even parts of a page, each at most an eighth smaller than the one before
	// where that can be.
	for parts := pieceParts; ; parts += max(1, parts/8) {
		size := a.page / parts &^ 15
		if size < minPiece {
			break
		}
		a.classes = append(a.classes, size)
	}
	a.mu.open = make([][]*page, len(a.classes))
	return a
}

// classOf returns the class of the smallest pieces that n bytes fit into.
func (a *arena) classOf(n int) int {
	lo, hi := 0, len(a.classes)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if a.classes[mid] >= n {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// bytes returns how much memory the arena holds.
func (a *arena) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(len(a.mu.pages)) * int64(a.page)
}

// alloc returns a piece for n bytes, at most a.largest. It returns false when
// that needs a new page and there are maxPages already, or the system has no
// memory.
func (a *arena) alloc(n int, owner uint64, maxPages int) (piece, bool) {
	class := a.classOf(n)
	a.mu.Lock()
	defer a.mu.Unlock()
	open := a.mu.open[class]
	if len(open) == 0 {
		if len(a.mu.pages) >= maxPages || !a.addLocked(class) {
			return piece{}, false
		}
		open = a.mu.open[class]
	}
	p := open[len(open)-1]
	slot := p.next
	if k := len(p.free); k > 0 {
		slot = int(p.free[k-1])
		p.free = p.free[:k-1]
	} else {
		p.next++
	}
	p.used++
	p.owners[slot] = owner
	if p.used == len(p.owners) {
		a.closeLocked(p)
	}
	size := a.classes[class]
	return piece{p, slot, p.mem[slot*size : slot*size+n : slot*size+size]}, true
}

// addLocked puts a page to use.
func (a *arena) addLocked(class int) bool {
	var p *page
	if k := len(a.mu.spare); k > 0 {
		p = a.mu.spare[k-1]
		a.mu.spare = a.mu.spare[:k-1]
	} else {
		mem := mapMemory(a.page)
		if mem == nil {
			return false
		}
		p = &page{mem: mem}
	}
	p.class, p.next, p.used, p.free = class, 0, 0, p.free[:0]
	p.owners = make([]uint64, a.page/a.classes[class])
	p.at = len(a.mu.pages)
	a.mu.pages = append(a.mu.pages, p)
	p.open = len(a.mu.open[class])
	a.mu.open[class] = append(a.mu.open[class], p)
	return true
}

// closeLocked removes a page from the list of those with a free piece.
func (a *arena) closeLocked(p *page) {
	open := a.mu.open[p.class]
	last := open[len(open)-1]
	open[p.open], last.open = last, p.open
	a.mu.open[p.class] = open[:len(open)-1]
	p.open = -1
}

// release releases a piece. Its memory must not be used any more.
func (a *arena) release(x piece) {
	p := x.page
	if p == nil {
		return
	}
	scribble(x.mem[:cap(x.mem)])
	a.mu.Lock()
	defer a.mu.Unlock()
	p.free = append(p.free, uint16(x.slot))
	p.used--
	if p.open < 0 {
		p.open = len(a.mu.open[p.class])
		a.mu.open[p.class] = append(a.mu.open[p.class], p)
	}
	if p.used == 0 {
		a.dropLocked(p)
	}
}

// dropLocked stops using a page.
func (a *arena) dropLocked(p *page) {
	a.closeLocked(p)
	last := a.mu.pages[len(a.mu.pages)-1]
	a.mu.pages[p.at], last.at = last, p.at
	a.mu.pages = a.mu.pages[:len(a.mu.pages)-1]
	p.owners = nil
	if len(a.mu.spare) < sparePages && !a.mu.closed {
		a.mu.spare = append(a.mu.spare, p)
		return
	}
	unmapMemory(p.mem)
}

// close returns memory to the system as soon as it is free.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.closed = true
	for _, p := range a.mu.spare {
		unmapMemory(p.mem)
	}
	a.mu.spare = nil
}

// sampled is how many pages are looked at for one that holds little.
const sampled = 32

// sparsest appends the owners of the pieces of a page with few pieces, to free
// it for another class.
func (a *arena) sparsest(owners []uint64) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.mu.pages)
	if n == 0 {
		return owners
	}
	var least *page
	for range sampled {
		p := a.mu.pages[rand.IntN(n)]
		if least == nil || p.used*len(least.owners) < least.used*len(p.owners) {
			least = p
		}
	}
	return append(owners, least.owners[:least.next]...)
}
