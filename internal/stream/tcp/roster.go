package tcp

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// Roster holds the connections of one proxy and what is counted of them. It
// outlives the plans that the proxy stands in. Its methods may be called by
// several goroutines at once.
type Roster struct {
	up, down atomic.Uint64
	accepted atomic.Uint64
	// drain is how long connections may go on when the proxy is gone, by the last
	// settings.
	drain atomic.Int64

	mu struct {
		sync.Mutex
		conns   map[*Conn]struct{}
		errors  map[exchange.Reason]uint64
		retired bool
		cut     *time.Timer // ends what is left of a proxy that is gone
	}
}

// NewRoster returns an empty roster.
func NewRoster() *Roster {
	r := &Roster{}
	r.mu.conns = map[*Conn]struct{}{}
	r.mu.errors = map[exchange.Reason]uint64{}
	return r
}

// Counts returns what was counted so far.
func (r *Roster) Counts() exchange.PassageCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return exchange.PassageCounts{
		Open: len(r.mu.conns), Accepted: r.accepted.Load(), Received: r.up.Load(), Sent: r.down.Load(),
		Errors: maps.Clone(r.mu.errors),
	}
}

// Retire ends the proxy: its connections may go on for its time to drain, then
// they are cut.
func (r *Roster) Retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.retired = true
	if len(r.mu.conns) > 0 {
		r.cutLocked()
	}
}

// cutLocked begins the time after which all that is left is cut.
func (r *Roster) cutLocked() {
	if r.mu.cut == nil {
		r.mu.cut = time.AfterFunc(time.Duration(r.drain.Load()), r.cutAll)
	}
}

func (r *Roster) cutAll() {
	r.mu.Lock()
	left := maps.Clone(r.mu.conns)
	r.mu.cut = nil
	r.mu.Unlock()
	for c := range left {
		c.Close()
	}
}

func (r *Roster) add(c *Conn) {
	r.accepted.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.conns[c] = struct{}{}
	if r.mu.retired {
		r.cutLocked() // it was accepted while the proxy went
	}
}

func (r *Roster) remove(c *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.conns, c)
	if len(r.mu.conns) == 0 && r.mu.cut != nil {
		r.mu.cut.Stop()
		r.mu.cut = nil
	}
}

func (r *Roster) failed(why exchange.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.errors[why]++
}
