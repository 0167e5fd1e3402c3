package health

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
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

// Policy is how the servers of a route are judged by their requests. It is not
// changed after the route is compiled.
type Policy struct {
	// Ejection says when a server is ejected.
	Ejection Ejection
	// SlowStart is the time in which a server that comes back gets its full share.
	SlowStart time.Duration
	// Servers are those of the route; what may be ejected at once is a part of
	// them.
	Servers []*Server

	mu sync.Mutex // held while a server is ejected
}

// Answered records that a response head was received.
func (s *Server) Answered() {
	if s.failures.Load() != 0 {
		s.failures.Store(0)
	}
	if !s.answered.Load() {
		s.firstAnswer()
	}
}

// Ended records that a response was complete.
func (s *Server) Ended() {
	if s.breaks.Load() != 0 {
		s.breaks.Store(0)
	}
}

// Failed records that a request got no response head.
func (s *Server) Failed(p *Policy, failure *exchange.Error) {
	if Blames(failure.Reason) {
		s.count(p, &s.failures, failure)
	}
}

// Broke records that a response was incomplete.
func (s *Server) Broke(p *Policy, failure *exchange.Error) {
	if Blames(failure.Reason) {
		s.count(p, &s.breaks, failure)
	}
}

// Blames reports whether a reason speaks against the server.
func Blames(reason exchange.Reason) bool {
	switch reason {
	case exchange.UpstreamRefused, exchange.UpstreamReset, exchange.UpstreamDNS,
		exchange.UpstreamTLS, exchange.UpstreamInvalid, exchange.UpstreamTimeout:
		return true
	}
	return false
}

// count counts a failure of a row, and ejects the server when there are enough.
func (s *Server) count(p *Policy, row *atomic.Int32, failure *exchange.Error) {
	n := row.Add(1)
	s.noteFailure(failure.Error())
	if int(n) >= p.Ejection.Failures && s.Out()&balance.Ejected == 0 {
		if ejected := p.Ejection.Enabled && s.eject(p, int(n)); !ejected && row == &s.failures {
			s.fail()
		}
	}
}

// fail shows the server as unhealthy until it answers: requests failed in a row, and it is
// not ejected. It still gets requests.
func (s *Server) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.pastLocked()
	if past.failing || s.mu.retired {
		return
	}
	past.failing = true
	s.answered.Store(false)
	s.settleLocked("requests failed in a row")
}

// eject ejects the server for a while. It reports false if too many servers are out
// already.
func (s *Server) eject(p *Policy, failures int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := 1
	for _, other := range p.Servers {
		if other != s && other.Out()&balance.Ejected != 0 {
			out++
		}
	}
	if out*100 > p.Ejection.MaxPercent*len(p.Servers) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.pastLocked()
	if past.ejected != nil || s.mu.retired {
		return true
	}
	// Each stretch of good time as long as an ejection makes one of them forgotten.
	if past.times > 0 {
		past.times = max(0, past.times-int(time.Since(past.back)/p.Ejection.Time.D()))
	}
	past.times++
	pause := min(p.Ejection.Time.D()*time.Duration(past.times), p.Ejection.MaxTime.D())
	past.until = time.Now().Add(pause)
	past.slow = p.SlowStart
	again := int32(p.Ejection.Failures - 1)
	past.again = again
	past.ejected = time.AfterFunc(pause, func() { s.readmit(again) })
	past.ejections++
	s.Set(balance.Ejected)
	s.logChange(slog.LevelWarn, "server ejected", "failures_in_a_row", failures, "for", pause.String(), "error", past.failure)
	s.settleLocked("requests failed in a row")
	return true
}

// readmit ends an ejection. The row of failures goes on: the next one ejects again,
// the next answer ends it.
func (s *Server) readmit(row int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.pastLocked()
	past.ejected, past.back, past.until, past.failing = nil, time.Now(), time.Time{}, false
	if s.mu.retired {
		return
	}
	s.failures.Store(min(s.failures.Load(), row))
	s.breaks.Store(min(s.breaks.Load(), row))
	s.answered.Store(false)
	s.backLocked(balance.Ejected)
	s.logChange(slog.LevelInfo, "server gets requests again", "after", "ejection")
	s.settleLocked("the ejection is over")
}

// backLocked removes a reason why the server was out; after the last one, the
// server has a slow start if configured.
func (s *Server) backLocked(why balance.Out) {
	if past := s.mu.past; past != nil && s.Out()&^why == 0 && past.slow > 0 {
		s.Warm(clock.Now())
		if past.warm != nil {
			past.warm.Stop()
		}
		past.starts++
		this := past.starts
		past.warm = time.AfterFunc(past.slow, func() { s.warmed(this) })
	}
	s.Clear(why)
}

// warmed ends a slow start, unless another one has begun meanwhile.
func (s *Server) warmed(start int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.pastLocked()
	if past.starts != start {
		return
	}
	s.Warm(0)
	past.warm = nil
	s.settleLocked("the slow start is over")
}

// firstAnswer notes that the server has answered.
func (s *Server) firstAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered.Store(true)
	if past := s.mu.past; past != nil {
		past.failing = false
		if past.answeredAt = time.Now(); s.mu.verdict == Unhealthy && !past.answering {
			past.answering = true
			s.tellChanged()
		}
	}
	s.settleLocked("it answers requests")
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

// settleLocked records the state that results from all of the facts.
func (s *Server) settleLocked(reason string) {
	state := s.stateLocked()
	if state == s.mu.state {
		return
	}
	first := s.mu.state == Unknown && state == Healthy
	s.mu.state, s.mu.since, s.mu.reason = state, time.Now().UnixNano(), reason
	if !first {
		s.tellChanged()
	}
}

func (s *Server) stateLocked() State {
	past := s.knownLocked()
	switch {
	case past.held.Hold == exchange.HeldDisabled:
		return Disabled
	case past.held.Hold == exchange.HeldDraining:
		return Draining
	case s.mu.verdict == Unhealthy, past.failing:
		return Unhealthy
	case past.ejected != nil:
		return Ejected
	case past.warm != nil:
		return SlowStart
	case s.mu.verdict == Healthy, s.answered.Load():
		return Healthy
	}
	return Unknown
}

// Status returns the status of the server, with the results of its checks if results is
// true.
func (s *Server) Status(results bool) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.knownLocked()
	out := Status{
		State: s.mu.state, Since: time.Unix(0, s.mu.since), Reason: s.mu.reason, Until: past.until,
		LastError: past.failure, LastErrorAt: past.failedAt, Active: s.Active(), Ejections: past.ejections, Answering: past.answering,
	}
	if out.State == Unknown && out.Reason == "" && past.failure != "" {
		out.Reason = "the last request failed, and none has succeeded yet"
	}
	if past.held.Hold != exchange.NotHeld {
		out.Hold, out.Until, out.Reason = past.held.Hold.String(), past.held.Until, heldReason(past.held)
	}
	if n := len(past.watches); n > 0 {
		past.watches[n-1].check.status(&out, results)
	}
	return out
}

// status adds what the checks know.
func (k *Check) status(out *Status, results bool) {
	out.Passed, out.Failed = k.passed.Load(), k.failed.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.failedAt.After(out.LastErrorAt) {
		out.LastError, out.LastErrorAt = k.mu.failure, k.mu.failedAt
	}
	var signs [Results]byte
	for i := range k.mu.results {
		if signs[i] = '-'; k.mu.results[i].Healthy {
			signs[i] = '+'
		}
	}
	out.Recent = string(signs[:len(k.mu.results)])
	if results {
		out.Results = slices.Clone(k.mu.results)
	}
}
