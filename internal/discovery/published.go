package discovery

import (
	"slices"
	"sync"
	"time"
)

// Published is the snapshot that a Source shows, which embeds it. Its methods may be called by
// several goroutines at once.
type Published struct {
	changed chan struct{}

	mu       sync.Mutex
	snapshot *Snapshot
}

// NewPublished returns the snapshot of a source that has no result yet.
func NewPublished() *Published {
	return &Published{changed: make(chan struct{}, 1), snapshot: &Snapshot{State: Connecting, Since: time.Now()}}
}

// Snapshot returns what is known now.
func (p *Published) Snapshot() *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot
}

// Changed has a value when Snapshot may return another one than before.
func (p *Published) Changed() <-chan struct{} { return p.changed }

// Restore makes next the snapshot of a source that was not started yet.
func (p *Published) Restore(next Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next.Since = time.Now()
	p.snapshot = &next
}

// Publish makes next the snapshot and signals Changed, unless nothing changed but its times.
func (p *Published) Publish(next Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.snapshot
	if next.Since = was.Since; next.State != was.State {
		next.Since = time.Now()
	}
	if next.State == was.State && next.Reason == was.Reason && next.Known == was.Known && slices.Equal(next.Objects, was.Objects) && slices.Equal(next.Issues, was.Issues) {
		return
	}
	p.snapshot = &next
	select {
	case p.changed <- struct{}{}:
	default: // one is on its way
	}
}
