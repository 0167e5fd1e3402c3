package health

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/server/balance"
)

// The states of a circuit.
const (
	CircuitClosed   = "closed"
	CircuitOpen     = "open"
	CircuitHalfOpen = "half_open"
)

// cells is how many parts a window is counted in.
const cells = 10

// Circuit is the circuit breaker of one server of a route. It is safe for use by
// many goroutines at once.
type Circuit struct {
	// constant
	settings Breaker
	errors   *statuses
	server   *Server
	begun    int64 // by clock.Now: start of its cells

	opened atomic.Uint64

	mu struct {
		sync.Mutex
		state   string
		since   int64 // by clock.Now: when it became half-open
		cells   [cells]struct{ all, bad int }
		cell    int64 // the number of the latest cell
		good    int   // probes that went well
		timer   *time.Timer
		due     int64 // when the timer may act, by clock.Now
		retired bool
	}
}

// NewCircuit returns a closed circuit for a server, by settings that were checked.
func NewCircuit(b *Breaker, server *Server) *Circuit {
	c := &Circuit{settings: *b, server: server, begun: clock.Now()}
	c.errors, _ = parseStatuses(b.Status)
	c.mu.state = CircuitClosed
	return c
}

// Retire closes the circuit for good.
func (c *Circuit) Retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.retired = true
	if c.mu.timer != nil {
		c.mu.timer.Stop()
	}
	c.mu.state = CircuitClosed
	c.server.Clear(balance.Open | balance.HalfOpen)
}

// State returns the word of the circuit's state.
func (c *Circuit) State() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.state
}

// Opened returns how often the circuit was opened.
func (c *Circuit) Opened() uint64 { return c.opened.Load() }

// Answered records a response head with this status, for an attempt from began to
// now, by clock.Now.
func (c *Circuit) Answered(status int, began, now int64) {
	slow := c.settings.SlowAfter > 0 && now-began > int64(c.settings.SlowAfter)
	c.record(slow || c.errors.has(status), began, now)
}

// Failed reports an attempt without an answer.
func (c *Circuit) Failed(began, now int64) { c.record(true, began, now) }

// Undone reports an attempt that says nothing about the server, as its client left.
func (c *Circuit) Undone(began int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.state == CircuitHalfOpen && began >= c.mu.since {
		c.server.AddProbe() // the place of this one
	}
}

func (c *Circuit) record(bad bool, began, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.retired:
	case c.mu.state == CircuitClosed:
		if all, wrong := c.countLocked(bad, now); bad && all >= c.settings.MinRequests && wrong*100 >= c.settings.ErrorPercent*all {
			c.server.logChange(slog.LevelWarn, "circuit opened", "requests", all, "errors", wrong, "for", c.settings.OpenTime.String())
			c.openLocked()
		}
	case c.mu.state == CircuitHalfOpen && began >= c.mu.since:
		c.probedLocked(bad)
	}
}

// countLocked counts a request, and returns those of the window and the errors
// among them.
func (c *Circuit) countLocked(bad bool, now int64) (all, wrong int) {
	cell := (now - c.begun) / (int64(c.settings.Window) / cells)
	if cell-c.mu.cell >= cells {
		c.mu.cells = [cells]struct{ all, bad int }{}
		c.mu.cell = cell
	}
	for c.mu.cell < cell {
		c.mu.cell++
		c.mu.cells[c.mu.cell%cells] = struct{ all, bad int }{}
	}
	at := &c.mu.cells[c.mu.cell%cells]
	if at.all++; bad {
		at.bad++
	}
	for i := range c.mu.cells {
		all, wrong = all+c.mu.cells[i].all, wrong+c.mu.cells[i].bad
	}
	return all, wrong
}

// probedLocked notes how a probe went.
func (c *Circuit) probedLocked(bad bool) {
	if bad {
		c.server.logChange(slog.LevelWarn, "circuit opened again", "for", c.settings.OpenTime.String())
		c.openLocked()
		return
	}
	if c.mu.good++; c.mu.good >= c.settings.Probes {
		c.mu.timer.Stop()
		c.mu.state = CircuitClosed
		c.mu.cells = [cells]struct{ all, bad int }{}
		c.server.Clear(balance.HalfOpen)
		c.server.logChange(slog.LevelInfo, "circuit closed", "probes", c.mu.good)
	}
}

func (c *Circuit) openLocked() {
	c.mu.state = CircuitOpen
	c.opened.Add(1)
	c.server.Set(balance.Open)
	c.server.Clear(balance.HalfOpen)
	if c.mu.timer != nil {
		c.mu.timer.Stop()
	}
	c.laterLocked()
}

// laterLocked has the circuit half-opened when its time has come.
func (c *Circuit) laterLocked() {
	c.mu.due = clock.Now() + int64(c.settings.OpenTime)
	c.mu.timer = time.AfterFunc(c.settings.OpenTime.D(), c.halfOpen)
}

// halfOpen admits probes. It does so again if they did not complete within the time that
// the circuit was open, because there were too few requests or one of them hangs.
func (c *Circuit) halfOpen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.retired || c.mu.state == CircuitClosed || clock.Now() < c.mu.due {
		return
	}
	c.mu.state, c.mu.good = CircuitHalfOpen, 0
	c.mu.since = clock.Now()
	c.server.AllowProbes(c.settings.Probes)
	c.server.Set(balance.HalfOpen)
	c.server.Clear(balance.Open)
	c.laterLocked()
}
