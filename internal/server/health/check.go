package health

import (
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// Results is how many results of checks are kept for people.
const Results = 20

// Probe is how checks reach a server, over connections that are not used for requests.
type Probe struct {
	// Name is the server's URL, for the log.
	Name string
	// Source sends requests. They have the Host of Config.
	Source exchange.Source
	// Connect opens a connection, with its handshake, and closes it.
	Connect func(timeout time.Duration) error
}

// Check checks one server at intervals. Servers of routes receive its results
// with Watch.
type Check struct {
	// constant
	config   Config
	path     string
	query    string
	method   string
	call     []byte // what a gRPC check sends, or nil
	statuses *statuses
	body     *regexp.Regexp // or nil
	probe    Probe
	rounds   *Rounds
	log      *slog.Logger

	retired atomic.Bool
	passed  atomic.Uint64
	failed  atomic.Uint64

	// owned by the check that runs; there is one at a time
	subrequest exchange.Subrequest
	buffer     []byte

	mu struct {
		sync.Mutex
		timer    *time.Timer
		verdict  State // Unknown, Healthy or Unhealthy
		since    time.Time
		reason   string
		rises    int // passed in a row
		falls    int // failed in a row
		results  []Result
		failure  string // the last
		failedAt time.Time
		watches  []*Watch
	}
}

// NewCheck returns a check of a server with valid settings. Start starts it,
// Retire ends it.
func NewCheck(c *Config, probe Probe, rounds *Rounds, log *slog.Logger) *Check {
	k := &Check{config: *c, probe: probe, rounds: rounds, log: log}
	k.path, k.query, k.method = c.Path, "", c.Method
	if i := strings.IndexByte(c.Path, '?'); i >= 0 {
		k.path, k.query = c.Path[:i], c.Path[i:]
	}
	if c.Type == GRPC {
		k.path, k.method, k.call = grpcPath, "POST", grpcRequest(c.Service)
	}
	k.statuses, _ = parseStatuses(c.Status)
	if c.Body != "" {
		k.body = regexp.MustCompile(c.Body)
	}
	k.mu.since = time.Now()
	return k
}

// Start starts the check. Further calls do nothing.
func (k *Check) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.timer == nil && !k.retired.Load() {
		k.mu.timer = time.AfterFunc(k.rounds.first(k.config.Interval.D()), k.run)
	}
}

// Retire ends the checks. One that is under way ends soon, and says nothing.
func (k *Check) Retire() {
	k.retired.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.timer != nil {
		k.mu.timer.Stop()
	}
}

// run is one check.
func (k *Check) run() {
	k.rounds.enter()
	if k.retired.Load() {
		k.rounds.leave()
		return
	}
	r := k.runOnce()
	k.rounds.leave()
	if k.retired.Load() {
		return
	}
	for _, w := range k.note(r) {
		w.server.refresh()
		w.server.lapse(k.config.Interval.D())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.retired.Load() {
		k.mu.timer.Reset(k.pauseLocked())
	}
}

// pauseLocked returns the time until the next check.
func (k *Check) pauseLocked() time.Duration {
	pause := k.config.Interval.D()
	if k.mu.verdict != Healthy || k.mu.falls > 0 {
		pause = min(pause, k.config.UnhealthyInterval.D())
	}
	return pause - pause/10 + rand.N(pause/5+1)
}

// note stores a result. It returns the watchers to notify: the verdict changed, or the
// server is still unhealthy.
func (k *Check) note(r Result) []*Watch {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.results) == Results {
		copy(k.mu.results, k.mu.results[1:])
		k.mu.results = k.mu.results[:Results-1]
	}
	k.mu.results = append(k.mu.results, r)
	before := k.mu.verdict
	if r.Healthy {
		k.passed.Add(1)
		k.mu.rises, k.mu.falls = k.mu.rises+1, 0
		if before == Unknown || k.mu.rises >= k.config.Rise {
			k.mu.verdict = Healthy
		}
	} else {
		k.failed.Add(1)
		k.mu.rises, k.mu.falls = 0, k.mu.falls+1
		k.mu.failure, k.mu.failedAt = r.Error, r.At
		if k.mu.falls >= k.config.Fall {
			k.mu.verdict = Unhealthy
		}
	}
	if k.mu.verdict == before {
		if before == Unhealthy {
			return slices.Clone(k.mu.watches)
		}
		return nil
	}
	k.mu.since = r.At
	k.tellLocked(before)
	return slices.Clone(k.mu.watches)
}

// tellLocked logs the new verdict.
func (k *Check) tellLocked(before State) {
	switch {
	case k.mu.verdict == Unhealthy:
		k.mu.reason = "checks fail"
		k.log.Warn("server unhealthy", "server", k.probe.Name, "was", before.String(), "failed_checks", k.mu.falls, "error", k.mu.failure)
	case before == Unhealthy:
		k.mu.reason = "checks pass again"
		k.log.Info("server healthy again", "server", k.probe.Name, "was", before.String(), "passed_checks", k.mu.rises)
	default:
		k.mu.reason = "checks pass"
		k.log.Debug("server healthy", "server", k.probe.Name, "was", before.String())
	}
}

// verdict returns what the checks say, since when and why.
func (k *Check) verdict() (State, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.verdict, k.mu.reason
}

// Watch is a server of a route that listens to a check. It is kept over plans, and
// retired, like the check itself.
type Watch struct {
	check     *Check
	server    *Server
	slowStart time.Duration
}

// Watch makes the verdicts of the check those of a server, until it is retired. A
// server that is healthy again starts slowly for as long as slowStart.
func (k *Check) Watch(s *Server, slowStart time.Duration) *Watch {
	w := &Watch{k, s, slowStart}
	k.mu.Lock()
	k.mu.watches = append(k.mu.watches, w)
	k.mu.Unlock()
	s.listen(w)
	return w
}

// Retire ends the listening.
func (w *Watch) Retire() {
	k := w.check
	k.mu.Lock()
	k.mu.watches = slices.DeleteFunc(k.mu.watches, func(other *Watch) bool { return other == w })
	k.mu.Unlock()
	w.server.leave(w)
}

// atOnce is how many checks may run at the same moment, apart how far the first
// checks of two servers lie apart at least.
const (
	atOnce = 64
	apart  = 5 * time.Millisecond
)

// Rounds spreads the checks of all servers and bounds how many run at once.
type Rounds struct {
	slots chan struct{}
	begun atomic.Int64 // checks that got their first moment
}

// KeepRounds returns the rounds that all checks of a process share.
func KeepRounds(env exchange.Env) *Rounds {
	return exchange.Keep(env, "rounds of checks", nil, NewRounds)
}

// NewRounds returns the rounds of a process.
func NewRounds() *Rounds { return &Rounds{slots: make(chan struct{}, atOnce)} }

// Retire does nothing: checks retire by themselves.
func (r *Rounds) Retire() {}

// first returns the time of the first run of a new check: the checks of a
// process start one after the other, all within one interval.
func (r *Rounds) first(interval time.Duration) time.Duration {
	n := r.begun.Add(1)
	return apart + (time.Duration(n)*apart)%max(interval, apart)
}

func (r *Rounds) enter() { r.slots <- struct{}{} }
func (r *Rounds) leave() { <-r.slots }
