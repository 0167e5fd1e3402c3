package health

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/server/balance"
)

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

// ClosedPort reports whether an error is that of a machine which answers, but at whose port
// nothing listens.
func ClosedPort(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

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
