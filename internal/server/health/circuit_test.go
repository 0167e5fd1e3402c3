package health

import (
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/clock"
	"headgate/internal/server/balance"
	"headgate/internal/setting/unit"
)

func breaker() *Breaker {
	return &Breaker{
		ErrorPercent: 50, Window: unit.Duration(10 * time.Second), MinRequests: 20, Status: "500-599",
		OpenTime: unit.Duration(10 * time.Second), Probes: 3,
	}
}

// answer tells a circuit of requests that were answered with a status just now.
func answer(c *Circuit, status, times int) {
	for range times {
		c.Answered(status, clock.Now(), clock.Now())
	}
}

func TestCircuitOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, log := newLog(t)
		s := newServer(log)
		c := NewCircuit(breaker(), s)
		answer(c, 500, 19)
		equal(t, "too few", c.State(), CircuitClosed)
		answer(c, 200, 20)
		answer(c, 404, 5)
		equal(t, "not half of them", c.State(), CircuitClosed)
		before := clock.Now()
		answer(c, 503, 10)
		equal(t, "state", c.State(), CircuitOpen)
		equal(t, "out", s.Out(), balance.Open)
		answer(c, 200, 100) // requests that were under way
		time.Sleep(10*time.Second - time.Nanosecond)
		equal(t, "state", c.State(), CircuitOpen)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "state", c.State(), CircuitHalfOpen)
		equal(t, "out", s.Out(), balance.HalfOpen)
		c.Answered(500, before, clock.Now()) // began before: no probe
		equal(t, "state", c.State(), CircuitHalfOpen)
		answer(c, 200, 2)
		answer(c, 500, 1)
		equal(t, "a probe failed", c.State(), CircuitOpen)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		answer(c, 200, 3)
		equal(t, "probes went well", c.State(), CircuitClosed)
		equal(t, "out", s.Out(), 0)
		equal(t, "opened", c.Opened(), 2)
		equal(t, "lines of opened", lines.count("circuit opened")+lines.count("circuit opened again"), 2)
		equal(t, "lines of closed", lines.count("circuit closed"), 1)
		answer(c, 500, 19)
		equal(t, "the window begins anew", c.State(), CircuitClosed)
		c.Retire()
	})
}

func TestWindowOfACircuitMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		c := NewCircuit(breaker(), newServer(log))
		defer c.Retire()
		for range 30 {
			answer(c, 500, 15)
			time.Sleep(11 * time.Second)
		}
		equal(t, "never twenty in ten seconds", c.State(), CircuitClosed)
		answer(c, 500, 15)
		time.Sleep(5 * time.Second)
		answer(c, 500, 15)
		equal(t, "thirty in ten seconds", c.State(), CircuitOpen)
	})
}

func TestSlowAnswersCountAsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		b := breaker()
		b.SlowAfter = unit.Duration(time.Second)
		c := NewCircuit(b, newServer(log))
		defer c.Retire()
		for range 20 {
			c.Answered(200, clock.Now()-int64(2*time.Second), clock.Now())
		}
		equal(t, "state", c.State(), CircuitOpen)
	})
}

// Probes that hang, or whose clients leave, do not keep a circuit half open for
// ever.
func TestProbesThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log := newLog(t)
		s := newServer(log)
		c := NewCircuit(breaker(), s)
		for range 20 {
			c.Failed(clock.Now(), clock.Now())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		g := balance.New([]balance.Member{{ID: "a", Weight: 1, Gauge: &s.Gauge}}, balance.Options{})
		take := func() balance.Outcome { _, outcome := g.Choose(&balance.Ask{Now: clock.Now()}); return outcome }
		for range 3 {
			equal(t, "probe", take(), balance.Chosen)
		}
		equal(t, "no more", take(), balance.Broken)
		c.Undone(clock.Now())
		equal(t, "in its place", take(), balance.Chosen)
		equal(t, "no more", take(), balance.Broken)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "later", take(), balance.Chosen)
		c.Retire()
		equal(t, "out", s.Out(), 0)
		time.Sleep(time.Hour)
		equal(t, "out", s.Out(), 0)
	})
}
