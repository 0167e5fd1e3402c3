package health

import (
	"encoding/json"
	"time"

	"headgate/internal/clock"
	"headgate/internal/server/balance"
)

// What a process hands over to the one that replaces it. Import is called on what is new,
// before it is used and before a Watch connects checks and servers.

// carriedServer is the state of a Server that is kept across a change. The verdict is that
// of its checks.
type carriedServer struct {
	State       State     `json:"state"`
	Since       time.Time `json:"since"`
	Reason      string    `json:"reason,omitempty"`
	Verdict     State     `json:"verdict"`
	Answered    bool      `json:"answered,omitempty"`
	Answering   bool      `json:"answering,omitempty"`
	Failing     bool      `json:"failing,omitempty"`
	Failures    int32     `json:"failures,omitempty"`
	Breaks      int32     `json:"breaks,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	Ejections   uint64    `json:"ejections,omitempty"`
	// Ejected is when an ejection ends, Again the number of failures in a row after it,
	// Times how often the server was ejected recently, Back when the last ejection ended.
	Ejected time.Time     `json:"ejected_until,omitzero"`
	Again   int32         `json:"again,omitempty"`
	Times   int           `json:"times,omitempty"`
	Back    time.Time     `json:"back,omitzero"`
	Slow    time.Duration `json:"slow,omitempty"`
}

// Export returns what is known of the server; nil is nothing.
func (s *Server) Export() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.knownLocked()
	c := carriedServer{
		State: s.mu.state, Since: time.Unix(0, s.mu.since), Reason: s.mu.reason, Verdict: s.mu.verdict,
		Answered: s.answered.Load(), Answering: past.answering, Failing: past.failing, Failures: s.failures.Load(), Breaks: s.breaks.Load(),
		LastError: past.failure, LastErrorAt: past.failedAt, Ejections: past.ejections,
		Ejected: past.until, Again: past.again, Times: past.times, Back: past.back, Slow: past.slow,
	}
	if c.State == Unknown && c.Failures == 0 && c.LastError == "" {
		return nil
	}
	return marshal(c)
}

// Import accepts what Export returned.
func (s *Server) Import(data []byte) {
	var c carriedServer
	if json.Unmarshal(data, &c) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered.Store(c.Answered)
	s.failures.Store(max(c.Failures, 0))
	s.breaks.Store(max(c.Breaks, 0))
	if c.LastError != "" || c.Failing || c.Ejections > 0 || c.Verdict == Unhealthy {
		past := s.pastLocked()
		past.failure, past.failedAt, past.ejections = c.LastError, c.LastErrorAt, c.Ejections
		past.failing, past.answering, past.times, past.back, past.slow, past.again = c.Failing, c.Answering, c.Times, c.Back, c.Slow, c.Again
	}
	if c.Verdict == Unhealthy || c.Verdict == Healthy {
		s.mu.verdict = c.Verdict
	}
	if c.Verdict == Unhealthy {
		s.Set(balance.Unhealthy)
	}
	if left := time.Until(c.Ejected); left > 0 {
		past := s.pastLocked()
		past.until = c.Ejected
		past.ejected = time.AfterFunc(left, func() { s.readmit(c.Again) })
		s.Set(balance.Ejected)
	}
	s.mu.state = s.stateLocked()
	if s.mu.state == c.State {
		s.mu.since, s.mu.reason = c.Since.UnixNano(), c.Reason
	}
}

// carriedCheck is the state of a Check.
type carriedCheck struct {
	Verdict  State     `json:"verdict"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason,omitempty"`
	Rises    int       `json:"rises,omitempty"`
	Falls    int       `json:"falls,omitempty"`
	Results  []Result  `json:"results,omitempty"`
	Failure  string    `json:"failure,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Passed   uint64    `json:"passed,omitempty"`
	Failed   uint64    `json:"failed,omitempty"`
}

// Export returns what the check has found; nil is nothing.
func (k *Check) Export() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.results) == 0 {
		return nil
	}
	return marshal(carriedCheck{
		Verdict: k.mu.verdict, Since: k.mu.since, Reason: k.mu.reason, Rises: k.mu.rises, Falls: k.mu.falls, Results: k.mu.results,
		Failure: k.mu.failure, FailedAt: k.mu.failedAt, Passed: k.passed.Load(), Failed: k.failed.Load(),
	})
}

// Import accepts what Export returned.
func (k *Check) Import(data []byte) {
	var c carriedCheck
	if json.Unmarshal(data, &c) != nil || c.Verdict > Unhealthy {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.verdict, k.mu.since, k.mu.reason, k.mu.rises, k.mu.falls = c.Verdict, c.Since, c.Reason, c.Rises, c.Falls
	k.mu.results = append(k.mu.results, c.Results[max(0, len(c.Results)-Results):]...)
	k.mu.failure, k.mu.failedAt = c.Failure, c.FailedAt
	k.passed.Store(c.Passed)
	k.failed.Store(c.Failed)
}

// carriedCircuit is the state of a circuit. Due is when an open one admits probes.
type carriedCircuit struct {
	State  string    `json:"state"`
	Due    time.Time `json:"due,omitzero"`
	Opened uint64    `json:"opened,omitempty"`
}

// Export returns how the circuit is; nil for one that was never open.
func (c *Circuit) Export() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened.Load() == 0 {
		return nil
	}
	return marshal(carriedCircuit{State: c.mu.state, Due: clock.At(c.mu.due), Opened: c.opened.Load()})
}

// Import accepts what Export returned. An open circuit stays open as long as it would have
// in the other process; one that was half-open lets probes through again.
func (c *Circuit) Import(data []byte) {
	var was carriedCircuit
	if json.Unmarshal(data, &was) != nil {
		return
	}
	c.opened.Store(was.Opened)
	if was.State != CircuitOpen && was.State != CircuitHalfOpen {
		return
	}
	left := time.Duration(0)
	if was.State == CircuitOpen {
		left = min(max(time.Until(was.Due), 0), c.settings.OpenTime.D())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.state = CircuitOpen
	c.server.Set(balance.Open)
	c.mu.due = clock.Now() + int64(left)
	c.mu.timer = time.AfterFunc(left, c.halfOpen)
}

// marshal returns a value as JSON; there is nothing in it that cannot be written.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}
