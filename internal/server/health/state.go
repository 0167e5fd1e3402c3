package health

import (
	"slices"
	"time"

	"headgate/internal/exchange"
)

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
