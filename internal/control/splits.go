package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/server/split"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
)

// SplitState is a split of a route, and where it is. No document is touched. It lasts over
// changes of the configuration that leave its shares alone, and over restarts.
type SplitState struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy" required:"true"`
	// Route is the route with its matchers.
	Route string `json:"route" required:"true"`
	// Phase is running, held, returned or complete.
	Phase split.Phase `json:"phase" required:"true" enum:"running,held,returned,complete"`
	// Share is the candidate's percentage of clients.
	Share int `json:"share" required:"true"`
	// Since is when the phase or the share changed.
	Since time.Time `json:"since" required:"true"`
	// Who decided it: an operator, schedule or headgate.
	Who string `json:"who,omitempty"`
	// Why is the reason.
	Why string `json:"why,omitempty"`
	// Steps are the shares of the schedule.
	Steps []int `json:"steps,omitempty"`
	// Every is how long each step lasts, "" if an operator makes the steps.
	Every string `json:"every,omitempty"`
	// Next is the share after the current one; 0 if there is none.
	Next int `json:"next,omitempty"`
	// Waits is what the next step waits for: an operator, time or requests.
	Waits string `json:"waits,omitempty"`
	// Stable is what this machine has counted of the stable servers in the window.
	Stable SplitStats `json:"stable" required:"true"`
	// Candidate is what this machine has counted of the candidate servers in the window.
	Candidate SplitStats `json:"candidate" required:"true"`
	// Window is the time that is compared.
	Window string `json:"window" required:"true"`
	// MinRequests is how many requests both groups need in the window.
	MinRequests int `json:"min_requests" required:"true"`
	// Compared is whether both groups have enough requests.
	Compared bool `json:"compared" required:"true"`
	// Rollback is whether a worse candidate is returned.
	Rollback bool `json:"rollback" required:"true"`
}

// SplitStats is what was counted of a group in the window.
type SplitStats struct {
	// Requests is the number of requests.
	Requests int `json:"requests" required:"true"`
	// Errors is the number of requests that failed.
	Errors int `json:"errors" required:"true"`
	// P95 is the 95th percentile of the time to the response head, in milliseconds.
	P95 float64 `json:"p95_ms" required:"true"`
}

// splitPlace identifies a split.
type splitPlace struct{ proxy, route string }

// keptSplit is the value of a state in the store.
type keptSplit struct {
	Proxy string `json:"proxy"`
	Route string `json:"route"`
	// Print identifies the shares of the settings that it is about.
	Print string `json:"print"`
	split.State
}

// splitting is a split at run time.
type splitting struct {
	keptSplit
	revision store.Revision // of the entry
	unsaved  bool
	verdict  split.Verdict
}

// splits are the states of splits, and what is kept of them. Once a second the candidates
// that are worse are returned, in memory; another goroutine keeps that, and makes steps, so
// that a slow store delays no return.
type splits struct {
	store   store.Store
	log     *slog.Logger
	changed func(SplitState)
	frozen  func() bool
	shared  bool
	wake    chan struct{} // something is to be kept

	acting sync.Mutex // held while one decision is kept
	mu     struct {
		sync.Mutex
		states map[splitPlace]*splitting
		active []activeSplit // of the plan that requests are served by
		gone   []string      // keys of splits that the configuration has not any more
	}
}

// activeSplit is a split of the plan.
type activeSplit struct {
	plan.Split
	place   splitPlace
	program split.Program
}

func newSplits(c *Control) *splits {
	s := &splits{store: c.state, log: c.log, changed: c.watcher.Split, frozen: c.frozen.Load, shared: c.shared, wake: make(chan struct{}, 1)}
	s.mu.states = map[splitPlace]*splitting{}
	return s
}

func (k *keptSplit) place() splitPlace { return splitPlace{k.Proxy, k.Route} }

func (p splitPlace) key() string {
	sum := sha256.Sum256([]byte(p.proxy + "\x00" + p.route))
	return store.PrefixSplit + hex.EncodeToString(sum[:16])
}

// maxSplits bounds what is remembered.
const maxSplits = 10_000

// refresh takes all states that are kept.
func (s *splits) refresh(ctx context.Context) {
	entries, _, err := s.store.Snapshot(ctx, store.PrefixSplit)
	if err != nil {
		s.log.Error("the states of splits cannot be read", "error", err)
		return
	}
	for _, e := range entries[:min(len(entries), maxSplits)] {
		s.adopt(e)
	}
}

// follow takes the state under a key as another machine has kept it.
func (s *splits) follow(ctx context.Context, key string) {
	s.acting.Lock()
	defer s.acting.Unlock()
	s.followActing(ctx, key)
}

func (s *splits) followActing(ctx context.Context, key string) {
	e, err := s.store.Get(ctx, key)
	switch {
	case err == nil:
		s.adopt(e)
	case !errors.Is(err, store.ErrNotFound):
		s.log.Error("the state of a split that another machine has changed cannot be read", "error", err)
	}
}

// adopt takes a state from the store. A return that could not be kept yet has precedence.
func (s *splits) adopt(e store.Entry) {
	var k keptSplit
	if err := json.Unmarshal(e.Value, &k); err != nil || k.place().key() != e.Key || k.Share < 0 || k.Share > 100 {
		s.log.Warn("the state of a split cannot be read", "key", e.Key, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.mu.states[k.place()]
	switch {
	case now == nil:
		now = &splitting{}
		s.mu.states[k.place()] = now
	case now.unsaved && now.Phase == split.Returned && now.Since.After(k.Since):
		now.revision = e.Revision
		return
	}
	before := now.State
	now.keptSplit, now.revision, now.unsaved = k, e.Revision, false
	s.applyLocked(now, before)
}

// applyLocked makes a state so where requests are decided, and reports it if it is different.
func (s *splits) applyLocked(now *splitting, before split.State) {
	for _, one := range s.mu.active {
		if one.place != now.place() {
			continue
		}
		if before.Phase == split.Returned && now.Phase != split.Returned {
			one.Live.Forget()
			now.verdict = split.Verdict{}
		}
		one.Live.SetShare(now.Share)
		if now.State != before && before.Phase != "" {
			s.reportLocked(now, one)
		}
	}
}

// reportLocked logs a new state and notifies the watcher.
func (s *splits) reportLocked(now *splitting, of activeSplit) {
	s.log.Info("split is "+string(now.Phase), "proxy", now.Proxy, "route", now.Route, "candidate", now.Share, "who", now.Who, "why", now.Why)
	s.changed(now.state(of, time.Now()))
}

// state returns what is shown of a split.
func (now *splitting) state(of activeSplit, at time.Time) SplitState {
	p := &of.program
	out := SplitState{
		Proxy: now.Proxy, Route: now.Route, Phase: now.Phase, Share: now.Share, Since: now.Since, Who: now.Who, Why: now.Why,
		Steps: p.Steps, Stable: SplitStats(now.verdict.Stable), Candidate: SplitStats(now.verdict.Candidate), Window: of.Config.Rollback.Within.String(),
		MinRequests: p.Rules.MinRequests, Compared: now.verdict.Enough, Rollback: p.Rules.Enabled,
	}
	if p.Every > 0 {
		out.Every = unit.Duration(p.Every).String()
	}
	if now.Phase == split.Running || now.Phase == split.Held {
		out.Next = p.Next(now.Share)
		if out.Waits = p.Waits(now.State, now.verdict, at); out.Waits == string(split.Held) {
			out.Waits = "an operator"
		}
	}
	return out
}

// Prepare opens nothing. It makes splits a participant.
func (s *splits) Prepare(next *Next) (Change, error) { return splitsChange{s, next.Plan}, nil }

type splitsChange struct {
	*splits
	plan *plan.Plan
}

// Commit starts the splits that are new, or whose shares were changed in the configuration,
// and forgets those that are gone.
func (ch splitsChange) Commit() {
	s := ch.splits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.active = nil
	there := map[splitPlace]bool{}
	for _, one := range ch.plan.Splits() {
		place, program := splitPlace{one.Proxy, one.Route}, one.Config.Program()
		there[place] = true
		s.mu.active = append(s.mu.active, activeSplit{one, place, program})
		now := s.mu.states[place]
		switch {
		case now == nil:
			now = &splitting{}
			s.mu.states[place] = now
		case now.Print == program.Print():
			one.Live.SetShare(now.Share)
			continue
		}
		now.keptSplit = keptSplit{Proxy: one.Proxy, Route: one.Route, Print: program.Print(), State: program.Initial(time.Now().UTC())}
		now.unsaved, now.verdict = true, split.Verdict{}
		one.Live.Forget()
		one.Live.SetShare(now.Share)
	}
	for place, now := range s.mu.states {
		if p := ch.plan.Config().Proxies[place.proxy]; p != nil && p.IsWithheld() {
			continue // other machines have it
		}
		if !there[place] && !(s.shared && time.Since(now.Since).Abs() < forgetAfter) {
			delete(s.mu.states, place)
			s.mu.gone = append(s.mu.gone, place.key()) // the store may be slow, and a change does not wait
		}
	}
	s.notify()
}

// Cancel does nothing.
func (splitsChange) Cancel() {}

// saveTime bounds one commit.
const saveTime = 10 * time.Second

// removeGone removes the states of splits that are gone, and have not come back.
func (s *splits) removeGone(ctx context.Context) {
	s.mu.Lock()
	gone := s.mu.gone
	s.mu.gone = nil
	for _, one := range s.mu.active {
		gone = slices.DeleteFunc(gone, func(key string) bool { return key == one.place.key() })
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, saveTime)
	defer stop()
	for part := range slices.Chunk(gone, store.MaxOperations) {
		if _, err := s.store.Commit(ctx, store.Change{Delete: part}); err != nil {
			s.log.Warn("that a split is gone could not be kept", "error", err)
		}
	}
}

// notify wakes the goroutine that keeps states.
func (s *splits) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// splitTick is the time between two comparisons.
const splitTick = time.Second

// run compares and keeps until ctx ends.
func (s *splits) run(ctx context.Context) {
	var saving sync.WaitGroup
	saving.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			s.saveAll(ctx)
		}
	})
	defer saving.Wait()
	for clock.Sleep(ctx, splitTick) {
		if !s.frozen() {
			s.compare(clock.Now(), time.Now().UTC())
		}
	}
}

// compare compares the groups of all splits, and returns the candidates that are worse.
func (s *splits) compare(moment int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake := len(s.mu.gone) > 0
	for _, one := range s.mu.active {
		now := s.mu.states[one.place]
		if now == nil || !one.Active {
			continue
		}
		one.Live.Advance(moment, one.program.Rules.Within)
		now.verdict = one.Live.Compare(one.program.Rules)
		next, changed := one.program.Tick(now.State, now.verdict, at)
		if changed && next.Phase == split.Returned {
			before := now.State
			now.State, now.unsaved = next, true
			s.applyLocked(now, before)
		}
		wake = wake || changed || now.unsaved
	}
	if wake {
		s.notify()
	}
}

// saveAll keeps the states that are not kept yet, and makes the steps that are due.
func (s *splits) saveAll(ctx context.Context) {
	if s.frozen() {
		return
	}
	s.removeGone(ctx)
	s.mu.Lock()
	active := s.mu.active
	s.mu.Unlock()
	for _, one := range active {
		if ctx.Err() != nil {
			return
		}
		s.acting.Lock()
		s.saveActing(ctx, one)
		s.acting.Unlock()
	}
}

// saveActing keeps one state, or its next step.
func (s *splits) saveActing(ctx context.Context, one activeSplit) {
	s.mu.Lock()
	now := s.mu.states[one.place]
	if now == nil || !one.Active {
		s.mu.Unlock()
		return
	}
	kept, before, revision, unsaved := now.keptSplit, now.State, now.revision, now.unsaved
	next, step := one.program.Tick(now.State, now.verdict, time.Now().UTC())
	s.mu.Unlock()
	if !unsaved && !step {
		return
	}
	if step && !unsaved {
		kept.State = next
	}
	change := store.Change{Why: "split of " + kept.Proxy}
	err := s.commitActing(ctx, kept, revision, change, before)
	if err != nil && !errors.Is(err, ErrSplitChanged) && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
		s.log.Warn("the state of a split could not be kept", "proxy", kept.Proxy, "route", kept.Route, "error", err)
	}
}

// commitActing keeps a state in place of the one before it, and makes it so. If another
// machine has kept another one, that is taken, and the error is ErrSplitChanged.
func (s *splits) commitActing(ctx context.Context, kept keptSplit, revision store.Revision, change store.Change, before split.State) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	key := kept.place().key()
	change.If = []store.Condition{{Key: key, Revision: revision}}
	change.Put = []store.Entry{{Key: key, Value: data}}
	ctx, stop := context.WithTimeout(ctx, saveTime)
	defer stop()
	at, err := s.store.Commit(ctx, change)
	if errors.As(err, new(*store.Conflict)) {
		s.missing(key, revision)
		s.followActing(ctx, key)
		return ErrSplitChanged
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.mu.states[kept.place()]
	if now == nil {
		return ErrNoSplit
	}
	now.revision = at
	if now.State != before { // it was returned meanwhile
		now.unsaved = true
		return ErrSplitChanged
	}
	now.keptSplit, now.unsaved = kept, false
	s.applyLocked(now, before)
	return nil
}

// missing notes that the store has not the entry of a revision any more.
func (s *splits) missing(key string, revision store.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for place, now := range s.mu.states {
		if place.key() == key && now.revision == revision {
			now.revision = 0
		}
	}
}

// list returns the splits of the configuration, by proxy.
func (s *splits) list() []SplitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SplitState
	for _, one := range s.mu.active {
		if now := s.mu.states[one.place]; now != nil {
			all = append(all, now.state(one, time.Now()))
		}
	}
	slices.SortStableFunc(all, func(a, b SplitState) int { return cmp.Compare(a.Proxy, b.Proxy) })
	return all
}

// metrics returns the numbers of the splits.
func (s *splits) metrics() (all []metrics.Split) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.mu.active {
		m := metrics.Split{Proxy: one.Proxy, Route: one.Route, Share: one.Live.Share()}
		m.Stable.Requests, m.Stable.Errors = one.Live.Totals(split.Stable)
		m.Candidate.Requests, m.Candidate.Errors = one.Live.Totals(split.Candidate)
		all = append(all, m)
	}
	return all
}

// issue returns what an operator has to know of a split; "" for nothing.
func (s *SplitState) issue() string {
	switch s.Phase {
	case split.Returned:
		return fmt.Sprintf("split of route %s: the candidate gets no requests since %s (%s: %s)", s.Route, s.Since.Format(time.RFC3339), s.Who, cmp.Or(s.Why, "no reason given"))
	case split.Complete:
		return fmt.Sprintf("split of route %s: the candidate gets all requests: make its servers the stable ones in the configuration", s.Route)
	}
	return ""
}
