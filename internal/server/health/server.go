package health

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
)

// Server is what is known of one server of a route at run time. It outlives plans
// that leave the server alone. It is safe for use by many goroutines at once.
type Server struct {
	// The fields that every request reads are in the first cache line, those it writes
	// are in the second.

	// The requests in a row that got no answer, and those that got one which broke
	// off.
	failures, breaks atomic.Int32
	answered         atomic.Bool // it has answered a request since it was unhealthy or ejected

	// Gauge is how the balance of the route sees the server.
	balance.Gauge

	// constant
	name    Name
	log     *slog.Logger
	changed func(proxy string)

	mu struct {
		sync.Mutex
		state   State
		verdict State // of the checks
		retired bool
		since   int64 // Unix time in nanoseconds
		reason  string
		leave   func(exchange.Holdable) // the holds; nil without any
		past    *past                   // nil for the most of many servers
	}
}

// past is what is known of a server that is checked, has failed, is held, or starts slowly.
type past struct {
	watches   []*Watch
	ejections uint64

	failure  string // the last
	failedAt time.Time

	// A server that checks find unhealthy still gets requests when its route fails
	// open: answering means that it has answered one lately, answeredAt when. A
	// server that is failing answered none of the last requests, and is not ejected
	// since no other one could get its requests.
	answering  bool
	answeredAt time.Time
	failing    bool

	slow    time.Duration // of the last policy with a slow start
	ejected *time.Timer   // set while it is
	until   time.Time
	again   int32     // the row of failures after the ejection
	times   int       // how often it was ejected lately
	back    time.Time // when the last ejection ended
	warm    *time.Timer
	starts  int // slow starts so far
	held    exchange.Held
}

// pastLocked returns the past of the server, to be changed.
func (s *Server) pastLocked() *past {
	if s.mu.past == nil {
		s.mu.past = &past{}
	}
	return s.mu.past
}

// knownLocked returns the history of the server, for reading.
func (s *Server) knownLocked() past {
	if s.mu.past == nil {
		return past{}
	}
	return *s.mu.past
}

// Name is which server of which route it is, for the log.
type Name struct{ Proxy, Route, Server string }

// Options are what a Server is made of beside its name.
type Options struct {
	// MaxRequests is how many requests may run on the server at once, 0 for no bound.
	// Queue is where they wait for it; nil lets none wait.
	MaxRequests int
	Queue       *balance.Queue
	// Log receives changes of the server's state.
	Log *slog.Logger
	// Changed is called with the name of the proxy when the server's state changes, except
	// when a server without a state becomes healthy: such a server got requests before, and
	// after a start there may be very many of them. It may be called in a request, with
	// locks held: it must only record the notification. It may be nil.
	Changed func(proxy string)
}

// NewServer returns a server of which nothing is known.
func NewServer(name Name, o Options) *Server {
	s := &Server{name: name, log: o.Log, changed: o.Changed}
	s.Init(o.MaxRequests, o.Queue)
	s.mu.since = time.Now().UnixNano()
	return s
}

// Join lets operators hold the server, until it is retired.
func (s *Server) Join(holds exchange.Holds) *Server {
	if holds.Join != nil {
		s.mu.leave = holds.Leave
		holds.Join(s)
	}
	return s
}

// Place returns whose server it is, and which.
func (s *Server) Place() (proxy, route, server string) {
	return s.name.Proxy, s.name.Route, s.name.Server
}

// Hold applies the decision of an operator about the server. A server that returns
// to service has a slow start if configured.
func (s *Server) Hold(h exchange.Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != (exchange.Held{}) || s.mu.past != nil {
		s.pastLocked().held = h
	}
	switch h.Hold {
	case exchange.HeldDraining:
		s.Set(balance.Draining)
		s.Clear(balance.Disabled)
	case exchange.HeldDisabled:
		s.Set(balance.Disabled)
		s.Clear(balance.Draining)
	default:
		s.backLocked(balance.Draining | balance.Disabled)
	}
	s.settleLocked(heldReason(h))
}

// heldReason says why a server is held, or is not any more.
func heldReason(h exchange.Held) string {
	text := map[exchange.Hold]string{exchange.NotHeld: "enabled", exchange.HeldDraining: "drained", exchange.HeldDisabled: "disabled"}[h.Hold]
	if h.Who != "" {
		text += " by " + h.Who
	}
	if h.Why != "" {
		text += ": " + h.Why
	}
	return text
}

// logChange logs what happened to the server.
func (s *Server) logChange(level slog.Level, what string, more ...any) {
	s.log.Log(context.Background(), level, what, append([]any{"proxy", s.name.Proxy, "route", s.name.Route, "server", s.name.Server}, more...)...)
}

// Retire ends what waits for its time. Requests under way may go on telling.
func (s *Server) Retire() {
	if leave := s.retire(); leave != nil {
		leave(s) // it locks what holds servers, which locks servers
	}
}

func (s *Server) retire() (leave func(exchange.Holdable)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.retired = true
	past := s.knownLocked()
	for _, t := range []*time.Timer{past.ejected, past.warm} {
		if t != nil {
			t.Stop()
		}
	}
	leave, s.mu.leave = s.mu.leave, nil
	return leave
}

// lapse ends what firstAnswer noted of an unhealthy server, unless that was less than an
// interval of its checks ago. The next answer is noted again.
func (s *Server) lapse(interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.mu.past
	if past == nil || s.mu.verdict != Unhealthy {
		return
	}
	if s.answered.Load() {
		past.answeredAt = time.Now()
		s.answered.Store(false)
	}
	if past.answering && time.Since(past.answeredAt) >= interval {
		past.answering = false
		s.tellChanged()
	}
}

// tellChanged notes that the state of the proxy may be different.
func (s *Server) tellChanged() {
	if s.changed != nil {
		s.changed(s.name.Proxy)
	}
}

func (s *Server) noteFailure(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.pastLocked()
	past.failure, past.failedAt = text, time.Now()
}

// listen makes the verdict of a check the server's.
func (s *Server) listen(w *Watch) {
	s.mu.Lock()
	past := s.pastLocked()
	past.watches = append(past.watches, w)
	s.mu.Unlock()
	s.refresh()
}

// leave ends that. Without any check nothing is known.
func (s *Server) leave(w *Watch) {
	s.mu.Lock()
	past := s.pastLocked()
	past.watches = slices.DeleteFunc(past.watches, func(other *Watch) bool { return other == w })
	s.mu.Unlock()
	s.refresh()
}

// refresh reads the verdict of the check that was added last. Until it has one, the
// previous verdict applies.
func (s *Server) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	verdict, reason := Unknown, "it is not checked any more"
	if watches := s.knownLocked().watches; len(watches) > 0 {
		w := watches[len(watches)-1]
		if verdict, reason = w.check.verdict(); verdict == Unknown {
			return
		}
		if w.slowStart > 0 || s.mu.past != nil {
			s.pastLocked().slow = w.slowStart
		}
	}
	before := s.mu.verdict
	if verdict == before {
		return
	}
	s.mu.verdict = verdict
	switch {
	case verdict == Unhealthy:
		s.answered.Store(false)
		s.Set(balance.Unhealthy)
	case before == Unhealthy:
		s.pastLocked().answering = false
		s.backLocked(balance.Unhealthy)
	}
	s.settleLocked(reason)
}
