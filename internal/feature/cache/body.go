package cache

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// body is the body of a stored response. It can be read while it still arrives: by all
// readers, and a reader that finds nothing new reads on from the server, so that no client
// waits for a slower one.
//
// A body that is too large to be stored is passed through: what all readers have read is
// dropped, and no readers join any more.
type body struct {
	store *store
	owner uint64
	refs  atomic.Int32

	// whole is true when all of it is here; then the rest is immutable.
	whole  atomic.Bool
	length int64 // what Content-Length said, or -1
	limit  int64 // how much of it is stored

	mu struct {
		sync.Mutex
		pieces  []piece
		first   int64 // start of the first piece
		size    int64 // where what is here ends
		err     error // that ended it early
		pumping bool  // a reader reads from the server
		passing bool  // it is too large to be stored
		source  *fetch
		entry   *entry // that the index has or had it by; held, nil once the body has ended
		readers []*hit
		wake    chan struct{}
	}
}

// The bounds of a body.
const (
	firstPiece = 16 << 10 // of a body of unknown length, in bytes
	// window is how much of a body that is passed through is kept for readers
	// that are behind, in bytes.
	window = 1 << 20
	// behind is how long the others wait for a reader that reads nothing.
	behind = 10 * time.Second
	// finishing is how long a body is read without readers. One that takes longer may
	// never end.
	finishing = 30 * time.Second
	// busy is the limit for a body that is always available: reading it uses
	// processor time throughout.
	busy = 250 * time.Millisecond
	// atOnce is how much of a body is waited for before its head is sent, if it is
	// at hand, in bytes.
	atOnce = 64 << 10
)

var (
	errBehind    = errors.New("the client was too far behind others that get the same response")
	errAbandoned = errors.New("the response had no readers left")
	errPanicked  = &exchange.Error{Reason: exchange.Internal, Err: errors.New("what reads the response panicked")}
)

func newBody(s *store, owner uint64, length, limit int64) *body {
	b := &body{store: s, owner: owner, length: length, limit: limit}
	b.refs.Store(1)
	return b
}

// release lets go of the body.
func (b *body) release() {
	if b.refs.Add(-1) == 0 {
		for _, p := range b.mu.pieces {
			b.store.arena.release(p)
		}
		b.mu.pieces = nil
	}
}

// join makes h a reader. It returns false if the body was incomplete, and cannot be read
// from the start.
func (b *body) join(h *hit) bool {
	if b.whole.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err != nil || b.mu.passing {
		return false
	}
	if !b.whole.Load() {
		b.mu.readers = append(b.mu.readers, h)
	}
	return true
}

// leave ends a reader. The last one leaves the rest to the background, or ends
// the fetch.
func (b *body) leave(h *hit) { b.leaveTo(h, b.store.inBackground) }

// leaveTo is leave with what runs the rest; it returns false if nothing does.
func (b *body) leaveTo(h *hit, run func(func()) bool) {
	b.mu.Lock()
	for i, r := range b.mu.readers {
		if r == h {
			last := len(b.mu.readers) - 1
			b.mu.readers[i] = b.mu.readers[last]
			b.mu.readers = b.mu.readers[:last]
			break
		}
	}
	alone := len(b.mu.readers) == 0 && !b.mu.pumping && !b.endedLocked()
	b.mu.pumping = b.mu.pumping || alone
	passing := b.mu.passing
	b.wakeLocked()
	b.mu.Unlock()
	if alone && (passing || !run(b.finish)) {
		b.end(errAbandoned)
	}
}

func (b *body) endedLocked() bool { return b.whole.Load() || b.mu.err != nil }

// read copies what comes at at. It waits until there is something.
func (b *body) read(h *hit, p []byte) (int, error) {
	b.mu.Lock()
	for {
		switch {
		case h.lost:
			b.mu.Unlock()
			return 0, &exchange.Error{Reason: exchange.ClientTimeout, Err: errBehind}
		case h.at < b.mu.size:
			n := b.copyLocked(p, h.at)
			h.at += int64(n)
			b.mu.Unlock()
			return n, nil
		case b.whole.Load():
			b.mu.Unlock()
			return 0, io.EOF
		case b.mu.err != nil:
			err := b.mu.err
			b.mu.Unlock()
			return 0, err
		case !b.mu.pumping && b.roomLocked():
			b.mu.pumping = true
			b.mu.Unlock()
			b.pump()
		default:
			wake := b.waitLocked()
			b.mu.Unlock()
			b.wait(wake)
		}
		b.mu.Lock()
	}
}

// ready reports whether read would not wait for the server.
func (b *body) ready(h *hit) bool {
	b.mu.Lock()
	if h.at < b.mu.size || b.endedLocked() || h.lost {
		b.mu.Unlock()
		return true
	}
	if b.mu.pumping || !b.roomLocked() {
		b.mu.Unlock()
		return false
	}
	b.mu.pumping = true
	b.mu.Unlock()
	ready := b.atHand()
	b.mu.Lock()
	b.mu.pumping = false
	b.wakeLocked()
	b.mu.Unlock()
	return ready
}

// copyLocked copies from what is here.
func (b *body) copyLocked(p []byte, at int64) (n int) {
	begin := b.mu.first
	for i := range b.mu.pieces {
		mem := b.mu.pieces[i].mem
		mem = mem[:min(int64(len(mem)), b.mu.size-begin)]
		if end := begin + int64(len(mem)); at < end {
			k := copy(p[n:], mem[at-begin:])
			n, at = n+k, at+int64(k)
			if n == len(p) {
				return n
			}
		}
		begin += int64(len(mem))
	}
	return n
}

// roomLocked reports whether a streamed body has space for more. What every reader
// has read is free.
func (b *body) roomLocked() bool {
	if !b.mu.passing {
		return true
	}
	least := b.mu.size
	for _, r := range b.mu.readers {
		least = min(least, r.at)
	}
	for len(b.mu.pieces) > 1 && b.mu.first+int64(len(b.mu.pieces[0].mem)) <= least {
		b.mu.first += int64(len(b.mu.pieces[0].mem))
		b.store.arena.release(b.mu.pieces[0])
		b.mu.pieces = b.mu.pieces[1:]
	}
	return b.mu.size-least < window
}

// wait waits for something to happen. A reader that keeps the others waiting for
// too long is left behind.
func (b *body) wait(wake chan struct{}) {
	timer := time.NewTimer(behind)
	defer timer.Stop()
	select {
	case <-wake:
		return
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mu.passing || b.mu.pumping || b.roomLocked() {
		return
	}
	kept := b.mu.readers[:0]
	for _, r := range b.mu.readers {
		if r.lost = b.mu.size-r.at >= window; !r.lost {
			kept = append(kept, r)
		}
	}
	b.mu.readers = kept
	b.wakeLocked()
}

func (b *body) waitLocked() chan struct{} {
	if b.mu.wake == nil {
		b.mu.wake = make(chan struct{})
	}
	return b.mu.wake
}

func (b *body) wakeLocked() {
	if b.mu.wake != nil {
		close(b.mu.wake)
		b.mu.wake = nil
	}
}

// one returns a whole body that lies in one piece.
func (b *body) one() ([]byte, bool) {
	switch {
	case !b.whole.Load():
		return nil, false
	case len(b.mu.pieces) == 0:
		return nil, b.mu.size == 0
	case len(b.mu.pieces) > 1 || b.mu.first > 0:
		return nil, false
	}
	return b.mu.pieces[0].mem[:b.mu.size], true
}

// total returns the length of the body, -1 if it is not known yet.
func (b *body) total() int64 {
	if b.whole.Load() {
		return b.mu.size
	}
	return b.length
}
