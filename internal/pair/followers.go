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
		f.wakeLocked()
	}
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

// await waits until the follower has a revision, over a connection that is lost and opened
// again, too. It reports whether it has.
func (f *followers) await(ctx context.Context, at store.Revision) bool {
	for {
		f.mu.Lock()
		has, moved := f.mu.acked >= at, f.mu.moved
		f.mu.Unlock()
		if has {
			return true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}
