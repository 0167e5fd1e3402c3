package pair

import (
	"context"
	"sync"
	"time"

	"headgate/internal/store"
)

// followers is what the leader knows of the machine that follows it.
type followers struct {
	mu struct {
		sync.Mutex
		name      string
		connected int // streams: a new one may come before the old has ended
		opened    uint64
		acked     store.Revision
		heard     time.Time
		left      time.Time     // when the last stream has ended, zero while there is one
		waiting   int           // changes that wait for an acknowledgement
		moved     chan struct{} // closed at the next acknowledgement, start or end
	}
}

func (f *followers) init() { f.mu.moved = make(chan struct{}) }

// connect notes that a follower has a stream, from a revision on; the result ends it.
func (f *followers) connect(name string, at store.Revision) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.name != name {
		f.mu.name, f.mu.acked = name, 0
	}
	f.mu.connected++
	f.mu.opened++
	f.mu.acked, f.mu.heard = at, time.Now()
	f.wakeLocked()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.connected--
		f.mu.heard = time.Now()
		f.mu.left = f.mu.heard
		f.wakeLocked()
	}
}

// expect notes that a follower was connected until now, before an upgrade.
func (f *followers) expect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.left = time.Now()
}

// awaitReturn waits for a follower that has left a moment ago. It returns its name and whether it
// is connected.
func (f *followers) awaitReturn(ctx context.Context) (name string, connected bool) {
	f.mu.Lock()
	until := f.mu.left.Add(returnWait)
	f.mu.Unlock()
	ctx, stop := context.WithDeadline(ctx, until)
	defer stop()
	f.await(ctx, func() bool { return f.mu.connected > 0 })
	name, connected, _, _ = f.state()
	return name, connected
}

// awaitEnd waits until no stream is open.
func (f *followers) awaitEnd(ctx context.Context) {
	f.await(ctx, func() bool { return f.mu.connected == 0 })
}

func (f *followers) wakeLocked() {
	close(f.mu.moved)
	f.mu.moved = make(chan struct{})
}

// ack notes that a follower has everything up to a revision.
func (f *followers) ack(name string, at store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.name == name && f.mu.connected > 0 {
		f.mu.acked, f.mu.heard = max(f.mu.acked, at), time.Now()
		f.wakeLocked()
	}
}

// state returns the follower, whether it is connected, what it has and when it was heard
// last.
func (f *followers) state() (name string, connected bool, acked store.Revision, heard time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.name, f.mu.connected > 0, f.mu.acked, f.mu.heard
}

// streams returns how many streams were opened.
func (f *followers) streams() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.opened
}

// await waits until a condition holds, which is called with the lock held. It reports false when
// ctx has ended before.
func (f *followers) await(ctx context.Context, holdsLocked func() bool) bool {
	for {
		f.mu.Lock()
		holds, moved := holdsLocked(), f.mu.moved
		f.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// waits reports whether a change waits for the follower, and returns what is closed when that may
// have ended.
func (f *followers) waits() (waits bool, moved <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.waiting > 0, f.mu.moved
}

// expectAck notes that a change waits for the follower. awaitAck follows.
func (f *followers) expectAck() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.waiting++
}

// awaitAck waits until the follower has a revision, over a connection that is lost and opened
// again, too. It reports whether it has.
func (f *followers) awaitAck(ctx context.Context, at store.Revision) bool {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.waiting--
		f.wakeLocked()
	}()
	return f.await(ctx, func() bool { return f.mu.acked >= at })
}
