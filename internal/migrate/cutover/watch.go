package cutover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"headgate/internal/control"
)

// WatchLimits are when a watched cutover is reverted before the time to confirm it has passed.
type WatchLimits struct {
	// MaxErrors is the share of responses with a status 5xx, in percent from 0 to 100, above
	// which the cutover is reverted. Fewer than 20 responses are not judged.
	MaxErrors float64 `json:"max_errors_percent"`
	// MinHealthy is the share of the servers that were healthy before, in percent from 0 to
	// 100; the cutover is reverted when fewer are.
	MinHealthy float64 `json:"min_healthy_percent"`
}

// Valid reports whether both are percentages.
func (l WatchLimits) Valid() bool {
	return l.MaxErrors >= 0 && l.MaxErrors <= 100 && l.MinHealthy >= 0 && l.MinHealthy <= 100
}

// MinResponses is how many responses are needed to judge their errors.
const MinResponses = 20

// interval is how often a watch looks.
const interval = time.Second

// Watching is the state of a watch.
type Watching struct {
	WatchLimits
	// Until is when the cutover is confirmed, if no limit is exceeded until then.
	Until time.Time `json:"until"`
	// Responses is how many responses there were since the cutover.
	Responses uint64 `json:"responses"`
	// ServerErrors is how many of them had a status 5xx.
	ServerErrors uint64 `json:"errors_5xx"`
	// HealthyBefore is how many servers were healthy before the cutover.
	HealthyBefore int `json:"healthy_before"`
	// Healthy is how many servers are healthy now.
	Healthy int `json:"healthy"`
	// Result is empty while the watch goes on, then confirmed, reverted, or ended: it was
	// decided by someone else, or could not be decided.
	Result string `json:"result,omitempty"`
	// Reason is the limit that was exceeded, or why the watch could not decide.
	Reason string `json:"reason,omitempty"`
}

// The results of a watch.
const (
	ResultConfirmed = "confirmed"
	ResultReverted  = "reverted"
	ResultEnded     = "ended"
)

// Before is what a watch compares with, taken before the cutover.
type Before struct {
	requests, failed uint64
	healthy          int
}

// Measure returns what is counted now.
func Measure(c *control.Control) Before {
	b := Before{healthy: healthyServers(c)}
	b.requests, b.failed = c.Series().Totals()
	return b
}

func healthyServers(c *control.Control) (n int) {
	if p := c.Plan(); p != nil {
		for _, s := range p.Proxies("") {
			n += s.Healthy
		}
	}
	return n
}

// Watch follows a cutover that has to be confirmed: it confirms it after three quarters of
// that time, or reverts it when a limit is exceeded. Its methods may be called by several
// goroutines at once.
type Watch struct {
	// Revision is that of the cutover.
	Revision string

	decisions Decisions
	control   *control.Control
	before    Before
	stop      context.CancelFunc
	over      chan struct{}

	mu struct {
		sync.Mutex
		now Watching
	}
}

// Decisions make what a watch decides. The error of both is control.ErrNothingPending when
// the cutover was decided by someone else.
type Decisions interface {
	// Confirm confirms the revision.
	Confirm(revision string) error
	// Revert reverts it for a reason.
	Revert(revision, reason string) error
}

// Start watches the cutover of a revision that is reverted at end unless it is confirmed.
func Start(c *control.Control, d Decisions, revision string, end time.Time, limits WatchLimits, before Before) *Watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watch{Revision: revision, decisions: d, control: c, before: before, stop: stop, over: make(chan struct{})}
	w.mu.now = Watching{WatchLimits: limits, Until: time.Now().Add(time.Until(end) * 3 / 4).UTC(), HealthyBefore: before.healthy, Healthy: before.healthy}
	go w.run(ctx)
	return w
}

// Now returns its state.
func (w *Watch) Now() Watching {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.now
}

// Close ends the watch without a decision, and waits for it.
func (w *Watch) Close() {
	w.stop()
	<-w.over
}

func (w *Watch) run(ctx context.Context) {
	defer close(w.over)
	defer w.stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	end := time.NewTimer(time.Until(w.Now().Until))
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			w.finish(ResultEnded, "headgate is stopping")
			return
		case <-end.C:
			w.decide(ResultConfirmed, "", w.decisions.Confirm(w.Revision))
			return
		case <-tick.C:
		}
		if p := w.control.Pending(); p == nil || p.Revision != w.Revision {
			w.finish(ResultEnded, control.ErrNothingPending.Error())
			return
		}
		if reason := w.exceeded(); reason != "" {
			w.decide(ResultReverted, reason, w.decisions.Revert(w.Revision, reason))
			return
		}
	}
}

// decide notes what a decision led to.
func (w *Watch) decide(result, reason string, err error) {
	if err != nil {
		if reason != "" && !errors.Is(err, control.ErrNothingPending) {
			err = fmt.Errorf("%s; %w", reason, err)
		}
		result, reason = ResultEnded, err.Error()
	}
	w.finish(result, reason)
}

func (w *Watch) finish(result, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.now.Result, w.mu.now.Reason = result, reason
}

// exceeded counts, and returns the limit that is exceeded, "" for none.
func (w *Watch) exceeded() string {
	requests, failed := w.control.Series().Totals()
	healthy := healthyServers(w.control)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := &w.mu.now
	now.Responses, now.ServerErrors, now.Healthy = since(requests, w.before.requests), since(failed, w.before.failed), healthy
	return now.exceeded()
}

// since returns how much was counted after before. Counters of routes that are gone are not
// in now.
func since(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

func (n *Watching) exceeded() string {
	switch {
	case n.HealthyBefore > 0 && float64(n.Healthy)*100 < n.MinHealthy*float64(n.HealthyBefore):
		return fmt.Sprintf("%d of the %d servers that were healthy remain healthy, less than %g%%", n.Healthy, n.HealthyBefore, n.MinHealthy)
	case n.Responses >= MinResponses && float64(n.ServerErrors)*100 > n.MaxErrors*float64(n.Responses):
		return fmt.Sprintf("%d of %d responses since the cutover are 5xx, more than %g%%", n.ServerErrors, n.Responses, n.MaxErrors)
	}
	return ""
}
