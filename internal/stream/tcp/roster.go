package tcp

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// Roster holds the connections of one proxy and their counts. It outlives the
// plans that contain the proxy. Concurrent calls are allowed.
type Roster struct {
	up, down atomic.Uint64
	accepted atomic.Uint64
	// drain is how long connections may go on when the proxy is gone, by the last
	// settings.
	drain atomic.Int64

	mu struct {
		sync.Mutex
		first   *Conn // of those that are open
		open    int
		errors  map[exchange.Reason]uint64
		retired bool
		cut     *time.Timer // ends what is left of a proxy that is gone
	}
}

// NewRoster returns an empty roster.
func NewRoster() *Roster {
	r := &Roster{}
	r.mu.errors = map[exchange.Reason]uint64{}
	return r
}

// Counts returns what was counted so far.
func (r *Roster) Counts() exchange.StreamCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return exchange.StreamCounts{
		Open: r.mu.open, Accepted: r.accepted.Load(), Received: r.up.Load(), Sent: r.down.Load(),
		Errors: maps.Clone(r.mu.errors),
	}
}

// Retire ends the proxy: its connections may go on for its time to drain, then
// they are cut.
func (r *Roster) Retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.retired = true
	if r.mu.open > 0 {
		r.cutLocked()
	}
}

// cutLocked starts the time after which all remaining connections are cut.
func (r *Roster) cutLocked() {
	if r.mu.cut == nil {
		r.mu.cut = time.AfterFunc(time.Duration(r.drain.Load()), r.cutAll)
	}
}

func (r *Roster) cutAll() {
	r.mu.Lock()
	left := make([]*Conn, 0, r.mu.open)
	for c := r.mu.first; c != nil; c = c.next {
		left = append(left, c)
	}
	r.mu.cut = nil
	r.mu.Unlock()
	for _, c := range left {
		c.Close()
	}
}

func (r *Roster) add(c *Conn) {
	r.accepted.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.next = r.mu.first; c.next != nil {
		c.next.before = c
	}
	r.mu.first = c
	r.mu.open++
	if r.mu.retired {
		r.cutLocked() // it was accepted while the proxy went
	}
}

func (r *Roster) remove(c *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.next != nil {
		c.next.before = c.before
	}
	if c.before != nil {
		c.before.next = c.next
	} else {
		r.mu.first = c.next
	}
	c.next, c.before = nil, nil
	r.mu.open--
	if r.mu.open == 0 && r.mu.cut != nil {
		r.mu.cut.Stop()
		r.mu.cut = nil
	}
}

func (r *Roster) failed(why exchange.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.errors[why]++
}
