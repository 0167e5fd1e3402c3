// Package ports holds the open sockets of the process, and brings them to what a
// plan wants: Prepare opens what is missing, the Change it returns is committed or
// cancelled together with the rest of a configuration.
//
// sockets.go, quic.go and udp.go open and use sockets of TCP, QUIC and UDP
// proxies, waiting.go opens those whose address was busy, drains.go and
// quicdrains.go close the others. secure.go, handshake.go and pass.go find out
// what is spoken on a connection. state.go tells how things stand.
package ports

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// Options is what a Set is made of.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Metrics counts connections.
	Metrics *metrics.Registry
	// Current is the plan that requests are served by.
	Current *atomic.Pointer[plan.Plan]
	// Bind opens an address beside sockets that will be closed soon; nil is
	// listen.OpenBeside.
	Bind Bind
	// Pace is how long a port whose address is busy waits for the next try; zero is
	// the usual one.
	Pace Pace
}

// Set is the open sockets. Its methods may be called by several goroutines at
// once.
type Set struct {
	// constant
	log     *slog.Logger
	metrics *metrics.Registry
	current *atomic.Pointer[plan.Plan]
	bind    Bind
	pace    Pace

	serials atomic.Uint64 // of connections
	drains  drains
	// quicDrains are those of QUIC.
	quicDrains quicDrains
	// standing is what States tells; it is replaced when a change has ended.
	standing atomic.Pointer[standing]

	mu struct {
		sync.Mutex                    // held from Prepare to the end of the change
		sockets    map[string]*socket // by address
		quics      map[netip.AddrPort]*quicSocket
		udps       map[netip.AddrPort]*udpSocket
		waiting    map[string]*State // by address
		retry      *time.Timer
		closed     bool
	}
}

// New returns a set without sockets.
func New(o Options) *Set {
	if o.Bind == nil {
		o.Bind = listen.OpenBeside
	}
	if o.Pace == (Pace{}) {
		o.Pace = Pace{firstRetry, lastRetry}
	}
	c := &Set{log: o.Log, metrics: o.Metrics, current: o.Current, bind: o.Bind, pace: o.Pace}
	c.mu.sockets = map[string]*socket{}
	c.mu.quics = map[netip.AddrPort]*quicSocket{}
	c.mu.udps = map[netip.AddrPort]*udpSocket{}
	c.mu.waiting = map[string]*State{}
	c.standing.Store(&standing{})
	return c
}

// Change is the sockets of a plan on its way: those it adds are open and take no
// connections yet. Exactly one of Commit and Cancel is called; until then no other
// change begins.
type Change struct {
	set      *Set
	plan     *plan.Plan
	previous *plan.Plan
	opened   *opened
	waited   map[string]bool // addresses that waited before the change
}

// Prepare opens the sockets that next wants and that are not open. An address that
// cannot be opened refuses the change; at the start, when previous is nil, and for a
// port that waits already, it makes the port wait.
func (c *Set) Prepare(next, previous *plan.Plan) (*Change, error) {
	c.mu.Lock()
	ch := &Change{set: c, plan: next, previous: previous, waited: map[string]bool{}}
	for address := range c.mu.waiting {
		ch.waited[address] = true
	}
	var err error
	if ch.opened, err = c.openSocketsLocked(ch); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	return ch, nil
}

// Cancel closes what Prepare has opened.
func (ch *Change) Cancel() {
	defer ch.set.mu.Unlock()
	ch.opened.close()
	ch.set.abandonQUIC(ch.opened)
}

// Commit takes the sockets into use, when the plan is the current one, and closes
// those that it does not want.
func (ch *Change) Commit() {
	c := ch.set
	defer c.mu.Unlock()
	c.takeSocketsLocked(ch)
	c.scheduleRetryLocked(c.pace.First)
	c.publishLocked()
	c.tell(ch)
}

// Close begins to drain every port; from then on nothing can change. Wait waits for
// the end of their connections.
func (c *Set) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	c.mu.closed = true
	if c.mu.retry != nil {
		c.mu.retry.Stop()
	}
	for _, s := range c.mu.sockets {
		c.drain(s)
	}
	for _, s := range c.mu.quics {
		c.drainQUIC(s)
	}
	clear(c.mu.sockets)
	for _, s := range c.mu.udps {
		c.closeUDP(s)
	}
	clear(c.mu.quics)
	clear(c.mu.udps)
	clear(c.mu.waiting)
	c.publishLocked()
}

// Wait returns when everything that drains has ended.
func (c *Set) Wait() {
	c.drains.wait()
	c.quicDrains.wait()
}
