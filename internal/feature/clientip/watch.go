package clientip

import (
	"log/slog"
	"sync"
	"time"

	"headgate/internal/exchange"
)

// The watch looks at one request in eight, judges by a hundred, and speaks once
// an hour.
const (
	oneIn     = 8
	enough    = 100
	telling   = time.Hour
	watchName = "client_ip watch"
)

// watch notices that most clients are servers of a CDN: a CDN is in front and
// the settings do not name it, so that limits and filters take all its visitors
// for one client. All routes without a CDN share one, which outlives plans.
type watch struct {
	log   *slog.Logger
	clock func() time.Time

	mu struct {
		sync.Mutex
		seen int
		of   [len(presets)]int // how many of seen were servers of each CDN
		told time.Time
	}
}

// newWatch returns the watch, or nil if the settings include a CDN or there is no log.
func newWatch(b *trust, env exchange.Env) *watch {
	if b != nil && len(b.cdns) > 0 || env.Keep == nil || env.Log == nil || env.Clock == nil {
		return nil
	}
	return exchange.Keep(env, watchName, nil, func() *watch { return &watch{log: env.Log, clock: env.Clock} })
}

// Retire does nothing: the watch holds nothing.
func (w *watch) Retire() {}

// sampled reports whether a request that began at a moment is looked at. The low
// bits of a moment in nanoseconds are as good as a throw of dice, and cost no
// memory that all cores share.
func sampled(start int64) bool { return start > 0 && start/16%oneIn == 0 }

// countClient counts the client of ex, and speaks when most of those that were counted
// are servers of one CDN.
func (w *watch) countClient(ex *exchange.Exchange) {
	found := -1
	for i, c := range known() {
		if c.has(ex.ClientIP) {
			found = i
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.seen++
	if found >= 0 {
		w.mu.of[found]++
	}
	if w.mu.seen < enough {
		return
	}
	for i, n := range w.mu.of {
		if now := w.clock(); 2*n > enough && (w.mu.told.IsZero() || now.Sub(w.mu.told) >= telling) {
			w.mu.told = now
			w.log.Warn("most requests come from a CDN that client_ip does not name, so all its visitors count as one client",
				"cdn", presets[i].name, "proxy", ex.Place.Proxy, "remedy", "add client_ip: {cdn: ["+presets[i].name+"]}")
		}
	}
	w.mu.seen, w.mu.of = 0, [len(presets)]int{}
}
