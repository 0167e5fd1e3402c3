package control

import (
	"sync"
)

// drains are the sockets that were closed and whose connections have not all
// ended.
type drains struct {
	mu struct {
		sync.Mutex
		sockets map[*socket]struct{}
	}
	running sync.WaitGroup
}

// begin closes a socket and lets its connections end, in the background. done is
// called when they have.
func (d *drains) begin(s *socket, done func()) {
	d.mu.Lock()
	if d.mu.sockets == nil {
		d.mu.sockets = map[*socket]struct{}{}
	}
	d.mu.sockets[s] = struct{}{}
	d.mu.Unlock()
	d.running.Go(func() {
		s.Drain(s.drain)
		d.mu.Lock()
		delete(d.mu.sockets, s)
		d.mu.Unlock()
		done()
	})
}

// wait returns when every socket has drained.
func (d *drains) wait() { d.running.Wait() }

func (d *drains) states() (all []PortState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.mu.sockets {
		all = append(all, s.state("draining"))
	}
	return all
}
