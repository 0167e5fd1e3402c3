package health

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/setting/unit"
)

var (
	refused = &exchange.Error{Reason: exchange.UpstreamRefused, Err: errors.New("connection refused")}
	left    = &exchange.Error{Reason: exchange.ClientClosed}
)

// newPolicy returns the servers of a route with the default ejection.
func newPolicy(servers int, log *slog.Logger) *Policy {
	p := &Policy{Ejection: Ejection{
		Enabled: true, Failures: 5, Time: unit.Duration(10 * time.Second), MaxTime: unit.Duration(5 * time.Minute), MaxPercent: 50,
	}}
	for range servers {
		p.Servers = append(p.Servers, newServer(log))
	}
	return p
}

func fail(s *Server, p *Policy, times int) {
	for range times {
		s.Failed(p, refused)
	}
}

func TestAServerThatFailedItsOnlyRequestSaysSo(t *testing.T) {
	_, log := newLog(t)
	p := newPolicy(2, log)
	s := p.Servers[0]
	equal(t, "reason before", s.Status(false).Reason, "")
	fail(s, p, 1)
	equal(t, "state", s.Status(false).State, Unknown)
	equal(t, "reason", s.Status(false).Reason, "the last request failed, and none has succeeded yet")
	s.Answered()
	equal(t, "reason after", s.Status(false).Reason, "it answers requests")
}

func TestFailuresInARowEject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, log := newLog(t)
		p := newPolicy(2, log)
		s := p.Servers[0]
		fail(s, p, 4)
		s.Answered() // the row is broken
		fail(s, p, 4)
		for range 20 {
			s.Failed(p, left) // says nothing about the server
		}
		equal(t, "state", s.Status(false).State, Healthy)
		fail(s, p, 1)
		st := s.Status(false)
		equal(t, "state", st.State, Ejected)
		equal(t, "until", time.Until(st.Until), 10*time.Second)
		equal(t, "error", st.LastError, "upstream_refused: connection refused")
		equal(t, "out", s.Out(), balance.Ejected)
		fail(s, p, 20) // requests that were under way
		time.Sleep(10*time.Second - time.Nanosecond)
		equal(t, "state", s.Status(false).State, Ejected)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "state", s.Status(false).State, Unknown)
		equal(t, "out", s.Out(), 0)
		// The row goes on: the next failure ejects again, for longer.
		fail(s, p, 1)
		equal(t, "state", s.Status(false).State, Ejected)
		equal(t, "until", time.Until(s.Status(false).Until), 20*time.Second)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s.Answered()
		equal(t, "state", s.Status(false).State, Healthy)
		equal(t, "ejections", s.Status(false).Ejections, 2)
		equal(t, "lines", lines.count("server ejected"), 2)
		// Good time makes ejections forgotten.
		time.Sleep(time.Minute)
		fail(s, p, 5)
		equal(t, "until", time.Until(s.Status(false).Until), 10*time.Second)
		s.Retire()
	})
}

func TestEjectionsGrowToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		p := newPolicy(2, log)
		s := p.Servers[0]
		fail(s, p, 4)
		for n := 1; n < 50; n++ {
			fail(s, p, 1)
			pause := time.Until(s.Status(false).Until)
			equal(t, "pause", pause, min(time.Duration(n)*10*time.Second, 5*time.Minute))
			time.Sleep(pause)
			synctest.Wait()
		}
	})
}

func TestNoMoreThanHalfAreEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for servers, most := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 10: 5} {
			_, log := newLog(t)
			p := newPolicy(servers, log)
			out := 0
			for _, s := range p.Servers {
				fail(s, p, 10)
				if s.Status(false).State == Ejected {
					out++
				}
			}
			equal(t, "ejected", out, most)
			for _, s := range p.Servers {
				s.Retire()
			}
		}
	})
}

// A server that answers every request and breaks every answer off is ejected too.
func TestBrokenAnswersEject(t *testing.T) {
	_, log := newLog(t)
	p := newPolicy(2, log)
	s := p.Servers[0]
	for range 4 {
		s.Answered()
		s.Broke(p, refused)
	}
	s.Answered()
	s.Ended()
	for range 5 {
		equal(t, "state", s.Status(false).State, Healthy)
		s.Answered()
		s.Broke(p, refused)
	}
	equal(t, "state", s.Status(false).State, Ejected)
	s.Retire()
}

func TestEjectionCanBeSwitchedOff(t *testing.T) {
	_, log := newLog(t)
	p := newPolicy(2, log)
	p.Ejection.Enabled = false
	fail(p.Servers[0], p, 100)
	equal(t, "state", p.Servers[0].Status(false).State, Unhealthy)
	equal(t, "out", p.Servers[0].Out(), 0)
}

func TestServerComesBackSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		p := newPolicy(2, log)
		p.SlowStart = time.Minute
		s := p.Servers[0]
		s.Answered()
		equal(t, "at first", s.Status(false).State, Healthy)
		fail(s, p, 5)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "after the ejection", s.Status(false).State, SlowStart)
		s.Answered()
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "after the slow start", s.Status(false).State, Healthy)

		f := &fake{respond: status(500, "")}
		k := startCheck(defaults(), Probe{Source: f}, NewRounds(), log)
		defer k.Retire()
		defer k.Watch(s, 20*time.Second).Retire()
		time.Sleep(time.Minute)
		equal(t, "unhealthy", s.Status(false).State, Unhealthy)
		f.set(status(200, ""))
		time.Sleep(10 * time.Second)
		equal(t, "again", s.Status(false).State, SlowStart)
		time.Sleep(20 * time.Second)
		equal(t, "and then", s.Status(false).State, Healthy)
	})
}

// What is retired leaves no timer behind.
func TestRetireStopsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		p := newPolicy(2, log)
		s := p.Servers[0]
		fail(s, p, 5)
		s.Retire()
		time.Sleep(time.Hour)
		equal(t, "state", s.Status(false).State, Ejected)
		fail(p.Servers[1], p, 5) // half of them are out already
		equal(t, "other", p.Servers[1].Status(false).State, Unhealthy)
		equal(t, "out", p.Servers[1].Out(), 0)
	})
}

func TestTellingAllocatesNothing(t *testing.T) {
	_, log := newLog(t)
	p := newPolicy(2, log)
	s := p.Servers[0]
	c := NewCircuit(breaker(), s)
	defer c.Retire()
	n := testing.AllocsPerRun(100, func() {
		s.Answered()
		c.Answered(200, 1, clock.Now())
		s.Ended()
	})
	equal(t, "allocations", n, 0)
}

// A slow start that was to end at the moment at which another one begins does not end
// that one.
func TestASlowStartEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		s := newServer(log)
		s.mu.Lock()
		s.pastLocked().slow = time.Minute
		s.backLocked(balance.Unhealthy)
		time.Sleep(time.Minute) // its end waits for the lock
		s.backLocked(balance.Unhealthy)
		s.settleLocked("checks pass again")
		s.mu.Unlock()
		synctest.Wait()
		equal(t, "state", s.Status(false).State, SlowStart)
		time.Sleep(time.Minute + 1)
		synctest.Wait()
		equal(t, "state behind it", s.Status(false).State, Unknown)
	})
}

// The only server of a route is not ejected. It is shown as unhealthy once requests fail in a
// row, takes requests all the while, and is healthy again with the first answer.
func TestAServerThatCannotBeEjectedIsUnhealthyUntilItAnswers(t *testing.T) {
	for _, ejects := range []bool{true, false} {
		_, log := newLog(t)
		p := newPolicy(1, log)
		p.Ejection.Enabled = ejects
		s := p.Servers[0]
		fail(s, p, 4)
		equal(t, "state", s.Status(false).State, Unknown)
		fail(s, p, 3)
		st := s.Status(false)
		equal(t, "state", st.State, Unhealthy)
		equal(t, "reason", st.Reason, "requests failed in a row")
		equal(t, "out", s.Out(), 0)
		s.Answered()
		equal(t, "state", s.Status(false).State, Healthy)
	}
}

// A server that fails its checks and answers requests all the same says so, for as long as
// an interval of the checks.
func TestAnUnhealthyServerThatAnswersSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		f := &fake{}
		f.set(status(500, ""))
		c := defaults()
		c.Path = "/"
		var changes atomic.Int32
		s := NewServer(Name{"shop", "/", "http://a"}, Options{Log: log, Changed: func(string) { changes.Add(1) }})
		k := startCheck(c, Probe{Name: "http://a", Source: f}, NewRounds(), log)
		w := k.Watch(s, 0)
		defer k.Retire()
		defer w.Retire()
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "state", s.Status(false).State, Unhealthy)
		equal(t, "answering", s.Status(false).Answering, false)
		before := changes.Load()
		s.Answered()
		equal(t, "answering", s.Status(false).Answering, true)
		equal(t, "changes", changes.Load(), before+1)
		for range 20 { // requests go on being answered
			time.Sleep(3 * time.Second)
			s.Answered()
		}
		equal(t, "answering", s.Status(false).Answering, true)
		equal(t, "changes", changes.Load(), before+1)
		time.Sleep(c.Interval.D() + 2*c.UnhealthyInterval.D() + time.Second)
		synctest.Wait()
		equal(t, "answering", s.Status(false).Answering, false)
		equal(t, "changes", changes.Load(), before+2)
		equal(t, "state", s.Status(false).State, Unhealthy)
	})
}
