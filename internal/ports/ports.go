// Package ports holds the open sockets of the process, and compares them with those that a
// plan requires. Prepare opens missing ones, and the returned Change is committed or
// cancelled together with the rest of a configuration.
//
// ports.go is the life of a change. listener.go is an open socket of any kind; tcp.go,
// quic.go and udp.go are specific to each kind. waiting.go opens sockets whose address was
// busy, drains.go closes those that are no longer configured, reset.go closes the
// connections of one, inherit.go shares sockets with another process, limit.go distributes
// the maximum of connections, state.go returns the states of ports. Package accept detects
// the protocol of a connection; listen holds the sockets and does not know the
// configuration.
package ports

import (
	"log/slog"
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
	// listen.Open.
	Bind Bind
	// Pace is how long a port whose address is busy waits for the next try; zero is
	// the usual one.
	Pace Pace
	// Inheritance has the sockets of the process that this one replaces; nil is none.
	Inheritance Inheritance
	// Activated has the sockets that the service manager has opened; nil is none.
	Activated Activated
	// Hold opens sockets and accepts nothing on them before Set.Start.
	Hold bool
	// QUIC are the keys of HTTP/3; nil makes some for each socket.
	QUIC *listen.QUICKeys
	// Changed is called when the state of a port may have changed. It may be called
	// with locks held and must not block. Nil ignores that.
	Changed func()
}

// Set is the open sockets. Its methods may be called by several goroutines at
// once.
type Set struct {
	// constant
	log       *slog.Logger
	metrics   *metrics.Registry
	current   *atomic.Pointer[plan.Plan]
	bind      Bind
	pace      Pace
	changed   func()
	inherit   Inheritance
	activated Activated
	quic      *listen.QUICKeys

	serials atomic.Uint64 // of connections
	drains  drains
	limit   listen.Limit
	// standing is what States returns; it is replaced at the end of a change.
	standing atomic.Pointer[standing]

	mu struct {
		sync.Mutex // held from Prepare to the end of the change
		open       map[key]*listener
		waiting    map[key]*State
		retry      *time.Timer
		closed     bool
		held       bool     // nothing is accepted yet
		shared     []shared // with another process, from Freeze to Thaw
		left       bool     // to that process
	}
}

// New returns a set without sockets.
func New(o Options) *Set {
	if o.Bind == nil {
		o.Bind = listen.Open
	}
	if o.Pace == (Pace{}) {
		o.Pace = Pace{firstRetry, lastRetry}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Inheritance == nil {
		o.Inheritance = noInheritance{}
	}
	if o.Activated == nil {
		o.Activated = noInheritance{}
	}
	s := &Set{activated: o.Activated, log: o.Log, metrics: o.Metrics, current: o.Current, bind: o.Bind, pace: o.Pace, changed: o.Changed, inherit: o.Inheritance, quic: o.QUIC}
	s.mu.held = o.Hold
	s.mu.open = map[key]*listener{}
	s.mu.waiting = map[key]*State{}
	s.standing.Store(&standing{})
	return s
}

// Change contains the sockets of a plan that is being prepared: those it adds are
// open and accept no connections yet. Exactly one of Commit and Cancel is called;
// until then no other change starts.
type Change struct {
	set      *Set
	plan     *plan.Plan
	previous *plan.Plan
	opened   map[key]*listener
	waiting  map[key]*State // the ports that cannot be opened yet
}

// Prepare opens the sockets that next wants and that are not open. An address that
// cannot be opened refuses the change; at the start, when previous is nil, and for a
// port that waits already, it makes the port wait.
func (s *Set) Prepare(next, previous *plan.Plan) (*Change, error) {
	s.mu.Lock()
	ch := &Change{set: s, plan: next, previous: previous, opened: map[key]*listener{}, waiting: map[key]*State{}}
	for _, port := range wanted(next) {
		k := keyOf(port)
		if s.mu.open[k] != nil {
			continue
		}
		l, err := s.open(next, port)
		if err == nil {
			ch.opened[k] = l
			continue
		}
		before := s.mu.waiting[k]
		if previous != nil && before == nil || !Temporary(err) {
			ch.Cancel()
			return nil, errPort(port, err)
		}
		ch.waiting[k] = waitingState(port, err, before)
	}
	return ch, nil
}

// Cancel closes what Prepare has opened.
func (ch *Change) Cancel() {
	defer ch.set.mu.Unlock()
	for _, l := range ch.opened {
		ch.set.abandon(l)
	}
}

// Commit starts to use the sockets, when the plan is the current one, and closes
// those that are not in it. Their connections drain without interruption.
func (ch *Change) Commit() {
	s := ch.set
	defer s.mu.Unlock()
	for k, l := range s.mu.open {
		if k.in(ch.plan) == nil {
			delete(s.mu.open, k)
			s.drain(l)
		}
	}
	s.settleLocked(ch.plan)
	for _, l := range ch.opened {
		s.serve(l)
	}
	s.drains.follow(ch.plan)
	waited := s.mu.waiting
	s.mu.waiting = ch.waiting
	s.endLocked(ch.plan)
	s.scheduleRetryLocked(s.pace.First)
	if ch.previous == nil {
		s.tellOpened(ch.opened)
	}
	s.tellWaiting(waited)
}

// settleLocked assigns the open listeners to ports of a plan.
func (s *Set) settleLocked(p *plan.Plan) {
	var counters []*metrics.Port
	for k, l := range s.mu.open {
		was, port := l.view.Load().on, k.in(p)
		if old := l.setPlan(p, port, s.metrics); old != nil {
			counters = append(counters, old)
		}
		if !port.Continues(was) {
			l.Renew() // the parameters negotiated on open connections differ from those of the port
		}
	}
	for _, old := range counters {
		old.Retire()
	}
}

// endLocked brings up to date what depends on which listeners there are.
func (s *Set) endLocked(p *plan.Plan) {
	s.divideLocked()
	s.advertiseLocked(p)
	s.publishLocked()
}

// Close starts to drain every port; from then on nothing can change. Wait waits for
// the end of their connections.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	s.mu.closed = true
	if s.mu.retry != nil {
		s.mu.retry.Stop()
	}
	for _, l := range s.mu.open {
		s.drain(l)
	}
	clear(s.mu.open)
	clear(s.mu.waiting)
	s.publishLocked()
}

// Wait returns when everything that drains has ended.
func (s *Set) Wait() { s.drains.wait() }
