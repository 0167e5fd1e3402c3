package ports

import (
	"maps"
	"slices"
	"sync"
	"time"

	"headgate/internal/plan"
)

// drains are the sockets that were closed and whose connections have not all
// ended.
type drains struct {
	mu struct {
		sync.Mutex
		sockets map[*socket]time.Time // since when they drain
	}
	running sync.WaitGroup
}

// begin closes a socket and lets its connections end, in the background. done is
// called when they have, with how many were cut.
func (d *drains) begin(s *socket, done func(cut int)) {
	d.mu.Lock()
	if d.mu.sockets == nil {
		d.mu.sockets = map[*socket]time.Time{}
	}
	d.mu.sockets[s] = time.Now()
	d.mu.Unlock()
	d.running.Go(func() {
		cut := s.Drain(s.drain)
		d.mu.Lock()
		delete(d.mu.sockets, s)
		d.mu.Unlock()
		done(cut)
	})
}

// wait returns when every socket has drained.
func (d *drains) wait() { d.running.Wait() }

// all returns the sockets and since when they drain.
func (d *drains) all() map[*socket]time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.mu.sockets)
}

// awaitRelease waits until no socket that drains has an address with this port
// number: one that an earlier change has closed may be about to let go of it.
// That is a matter of milliseconds.
func (d *drains) awaitRelease(port uint16) {
	for _, s := range slices.Collect(maps.Keys(d.all())) {
		if s.Address().Port() == port {
			<-s.Released()
		}
	}
}

// follow brings the sockets to a new plan, so that none holds on to an old one.
func (d *drains) follow(p *plan.Plan) {
	for s := range d.all() {
		s.view.Store(s.look(p))
	}
}
