// Package cluster is the store of a machine that shares its state with others: an engine
// that all of them use, and a copy of everything in the state directory. Reads come from the
// copy, so that nothing on this machine waits for the engine; changes go to the engine and
// are returned once the copy has them. When the engine is away, reads go on and changes are
// refused at once.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/local"
)

// The times of following.
const (
	// firstWait is how long a start waits for the engine before it goes on with the copy.
	firstWait = 5 * time.Second
	// settleWait is how long a change waits for the copy.
	settleWait = 2 * time.Second
	// clockWait limits the wait for the engine's time.
	clockWait = 2 * time.Second
	// again is the pause before the engine is watched again.
	again = time.Second
)

// State is how the copy stands.
type State string

// The states.
const (
	// Detached is when the engine cannot be followed: the copy is served, and changes are
	// refused.
	Detached State = "detached"
	// Following is the usual state.
	Following State = "following"
	// Rewound is when the engine was set back to an older state. Nothing is taken from it
	// until an operator decides.
	Rewound State = "rewound"
)

// Options is what a Store is made of.
type Options struct {
	// Copy is the state directory. Close closes it.
	Copy *local.Store
	// Engine is shared with other machines. Close closes it.
	Engine store.Store
	// Name identifies the engine in the state directory, so that the copy of one is not
	// taken for that of another.
	Name string
	// Hold opens the store of a process that is to replace another one: the copy is opened with
	// local.Options.Hold, and is of this engine already. Nothing is followed, and changes wait,
	// until Resume is called.
	Hold bool
	// Subject is what the engine is in log lines; empty is "the shared store".
	Subject string
	// Log reports what happens to the engine. Nil discards it.
	Log *slog.Logger
	// Changed is called when the state has changed. It may be nil.
	Changed func(State, error)
	// Rewound is called when the engine has another history than the copy. If it returns
	// nil, it has made the copy forget where it is, and all is compared. Nil leaves it to an
	// operator: see Rewound.
	Rewound func(context.Context) error
}

// fetcher is an engine that returns several entries at once. Those that were removed
// meanwhile are left out.
type fetcher interface {
	Fetch(ctx context.Context, keys []string) ([]store.Entry, error)
}

// Store is a shared store. Its methods may be called by several goroutines at once.
type Store struct {
	o       Options
	log     *slog.Logger
	gate    gate
	stop    context.CancelFunc
	done    chan struct{}                 // closed when following has ended
	decided chan struct{}                 // an operator has decided about an engine that was set back
	arrived atomic.Pointer[chan struct{}] // closed when the copy has gone on

	mu struct {
		sync.Mutex
		state  State
		since  time.Time
		why    error
		at     store.Position // of the copy
		adopt  bool           // an operator accepts an engine that was set back
		counts Health         // the numbers of it
		leases []*store.Lease // that may be held still
	}
}

var _ store.Store = (*Store)(nil)

// Open begins to follow the engine. It waits a little until the copy is up to date, and goes
// on without if the engine does not answer. The error wraps local.ErrOwn if the state
// directory has a state of its own, and a *local.Other if it is a copy of another engine.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, log: o.Log, stop: func() {}, done: make(chan struct{}), decided: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.o.Subject == "" {
		s.o.Subject = "the shared store"
	}
	if err := s.mirror(ctx); err != nil {
		return nil, err
	}
	at, err := o.Copy.Position(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.at, s.mu.state, s.mu.since = at, Detached, time.Now()
	next := make(chan struct{})
	s.arrived.Store(&next)
	if o.Hold {
		close(s.done)
		s.gate.close()
		return s, nil
	}
	first := make(chan struct{})
	s.startFollowing(sync.OnceFunc(func() { close(first) }))
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
		s.log.Error(s.o.Subject + " does not answer: the copy of this machine is served, and changes are refused")
	case <-ctx.Done():
		s.Close()
		return nil, ctx.Err()
	}
	return s, nil
}

// mirror makes the state directory a copy of the engine, or checks that it is one.
func (s *Store) mirror(ctx context.Context) error {
	if s.o.Hold {
		of, err := s.o.Copy.MirrorOf(ctx)
		if err == nil && of == s.o.Name {
			s.readClock(ctx)
		} else if err == nil {
			err = fmt.Errorf("the state directory is a copy of %q, and the store is now %s: restart headgate", of, s.o.Name)
		}
		return err
	}
	if err := s.o.Copy.Mirror(ctx, s.o.Name); err != nil && !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return nil
}

// startFollowing begins to follow the engine. Ready is called when the copy is up to date for
// the first time.
func (s *Store) startFollowing(ready func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.stop, s.done = stop, done
	go s.follow(ctx, done, ready)
}

// State returns how the copy stands, and why.
func (s *Store) State() (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.state, s.mu.why
}

// Position returns how far the copy has come.
func (s *Store) Position() store.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.at
}

func (s *Store) setState(state State, why error) {
	s.mu.Lock()
	was := s.mu.state
	s.mu.state, s.mu.why = state, why
	if was != state {
		s.mu.since = time.Now()
		switch state {
		case Following:
			s.mu.counts.Reconnects++
		case Rewound:
			s.mu.counts.Rewinds++
			s.mu.counts.Rewind = why
		}
	}
	s.mu.Unlock()
	if was == state {
		return
	}
	switch state {
	case Detached:
		s.log.Error(s.o.Subject+" cannot be followed: the copy of this machine is served, and changes are refused", "error", why)
	case Following:
		s.log.Info(s.o.Subject+" is followed", "revision", s.Position().Revision)
	case Rewound:
		s.log.Error(s.o.Subject+" was set back to an older state: nothing is taken from it until you decide whose state is right", "error", why)
	}
	if s.o.Changed != nil {
		s.o.Changed(state, why)
	}
}

// follow keeps the copy up to date until its context ends. Ready is called when it is for
// the first time.
func (s *Store) follow(ctx context.Context, done chan<- struct{}, ready func()) {
	defer close(done)
	for ctx.Err() == nil {
		err := s.catchUp(ctx)
		if err == nil {
			s.setState(Following, nil)
			ready()
			err = s.watch(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrRewound):
			if s.restart(ctx) == nil {
				continue
			}
			s.setState(Rewound, err)
			ready()
		case errors.Is(err, store.ErrTooOld):
			continue // catch up by comparing
		default:
			s.setState(Detached, err)
			if s.Position().Revision > 0 {
				ready() // there is something to serve, and a start does not wait
			}
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-s.decided:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// restart has the copy forget where it is, if that may be done without an operator.
func (s *Store) restart(ctx context.Context) error {
	if s.o.Rewound == nil {
		return store.ErrRewound
	}
	err := s.o.Rewound(ctx)
	if err == nil {
		s.moved(store.Position{})
	}
	return err
}

// watch takes one commit after the other.
func (s *Store) watch(ctx context.Context) error {
	for b, err := range s.o.Engine.Watch(ctx, "", s.Position()) {
		if err != nil {
			return err
		}
		if err := s.o.Copy.Follow(ctx, b); err != nil {
			return err
		}
		s.moved(b.Position)
	}
	return ctx.Err()
}

// moved notes that the copy has gone on.
func (s *Store) moved(at store.Position) {
	s.mu.Lock()
	s.mu.at = at
	s.mu.Unlock()
	next := make(chan struct{})
	close(*s.arrived.Swap(&next))
}

// catchUp brings the copy to the newest state of the engine: by its log if that goes back
// far enough, else by comparing what both have.
func (s *Store) catchUp(ctx context.Context) error {
	_, head, err := s.o.Engine.Snapshot(ctx, store.KeyHead) // for the position only
	if err != nil {
		return err
	}
	s.readClock(ctx)
	s.noteHead(head.Revision)
	s.mu.Lock()
	at, adopt := s.mu.at, s.mu.adopt
	s.mu.Unlock()
	if at == head {
		return nil
	}
	if adopt {
		return s.adoptEngine(ctx, head)
	}
	if at.Revision > 0 {
		err := s.replay(ctx, at, head)
		if !errors.Is(err, store.ErrTooOld) {
			return err
		}
	}
	return s.compare(ctx, head)
}

// replay takes commits of the log until the copy is where the engine was.
func (s *Store) replay(ctx context.Context, at, head store.Position) error {
	if at.Revision >= head.Revision {
		return fmt.Errorf("the copy of this machine is at revision %d and %s at %d: %w", at.Revision, s.o.Subject, head.Revision, store.ErrRewound)
	}
	for b, err := range s.o.Engine.Watch(ctx, "", at) {
		if err != nil {
			return err
		}
		if err := s.o.Copy.Follow(ctx, b); err != nil {
			return err
		}
		s.moved(b.Position)
		if b.Revision >= head.Revision {
			return nil
		}
	}
	return nil
}

// meta returns what a store has, by key.
func meta(ctx context.Context, of store.Store) (map[string]store.Meta, error) {
	all := map[string]store.Meta{}
	for after := ""; ; {
		list, err := of.List(ctx, "", after, store.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			all[m.Key] = m
			after = m.Key
		}
		if len(list) < store.MaxPage {
			return all, nil
		}
	}
}

// compare fetches what the engine has and the copy has not in the same revision. What is
// committed meanwhile comes by the log afterwards.
func (s *Store) compare(ctx context.Context, head store.Position) error {
	want, err := meta(ctx, s.o.Engine)
	if err != nil {
		return err
	}
	have, err := meta(ctx, s.o.Copy)
	if err != nil {
		return err
	}
	var gone []string
	for key, m := range have {
		if w, ok := want[key]; !ok {
			gone = append(gone, key)
		} else if w.Revision == m.Revision && w.Modified.Equal(m.Modified) {
			delete(want, key)
		}
	}
	var put []store.Entry
	size := 0
	for keys := range slices.Chunk(slices.Collect(maps.Keys(want)), store.MaxOperations) {
		entries, err := s.fetch(ctx, keys)
		if err != nil {
			return err
		}
		for _, e := range entries {
			put, size = append(put, e), size+len(e.Value)
			if len(put) < store.MaxOperations && size < store.MaxChange {
				continue
			}
			if err := s.o.Copy.Reset(ctx, put, nil, nil); err != nil {
				return err
			}
			put, size = nil, 0
		}
	}
	if err := s.o.Copy.Reset(ctx, put, gone, &head); err != nil {
		return err
	}
	s.moved(head)
	return nil
}

// fetch returns entries of the engine, without those that were removed meanwhile.
func (s *Store) fetch(ctx context.Context, keys []string) ([]store.Entry, error) {
	if f, ok := s.o.Engine.(fetcher); ok {
		return f.Fetch(ctx, keys)
	}
	var all []store.Entry
	for _, key := range keys {
		e, err := s.o.Engine.Get(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, e)
		}
	}
	return all, nil
}

// Get returns one entry of the copy: see store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.o.Copy.Get(ctx, key)
}

// List returns keys of the copy: see store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	return s.o.Copy.List(ctx, prefix, after, n)
}

// Snapshot returns entries of the copy: see store.Store.
func (s *Store) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	return s.o.Copy.Snapshot(ctx, prefix)
}

// Watch yields what the copy takes: see store.Store.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return s.o.Copy.Watch(ctx, prefix, after)
}

// Now returns the time of the engine's clock: see store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	before := time.Now()
	now, err := s.o.Engine.Now(ctx)
	if err == nil {
		s.o.Copy.SetTime(now.Add(time.Since(before) / 2))
	}
	return now, err
}

// Time returns the time of the engine's clock by that of this machine, and how far the engine's
// was ahead of it when it was read last: see store.Time.
func (s *Store) Time() time.Time { return s.o.Copy.Time() }

// readClock reads the engine's clock, for Time. An engine that has none to read sets it itself.
func (s *Store) readClock(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, clockWait)
	defer stop()
	_, _ = s.Now(ctx) // if it is away, the last one counts
}

// Commit makes a change in the engine, and waits until the copy has it: see store.Store.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	began := time.Now()
	at, err := s.o.Engine.Commit(ctx, c)
	if err == nil {
		committed := time.Now()
		s.await(ctx, at)
		s.noteCommit(at, committed.Sub(began), time.Since(committed))
	}
	return at, err
}

// enter waits while another process takes over, and returns why nothing can be changed. leave
// has to be called after the change.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if state, why := s.State(); state == Rewound {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, why)
	}
	return s.gate.pass(ctx)
}

// await waits until the copy has a revision, but not for long: the change is made.
func (s *Store) await(ctx context.Context, at store.Revision) {
	ctx, stop := context.WithTimeout(ctx, settleWait)
	defer stop()
	for {
		next := *s.arrived.Load()
		if s.Position().Revision >= at {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// Acquire takes a lease of the engine: see store.Store.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	l, err := s.o.Engine.Acquire(ctx, name, ttl)
	if err == nil {
		s.noteLease(l)
	}
	return l, err
}

// Append adds records in the engine: see store.Store.
func (s *Store) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return s.o.Engine.Append(ctx, stream, records)
}

// Page returns records of the engine: see store.Store.
func (s *Store) Page(ctx context.Context, stream string, before store.Sequence, n int) ([]store.Record, error) {
	return s.o.Engine.Page(ctx, stream, before, n)
}

// Export yields what the engine has: see store.Store.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return s.o.Engine.Export(ctx)
}

// Import fills the engine: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	return s.o.Engine.Import(ctx, items)
}

// Freeze refuses changes of all machines: see store.Store.
func (s *Store) Freeze(ctx context.Context, place string) error {
	return s.o.Engine.Freeze(ctx, place)
}

// Close ends following, and closes the engine and the copy.
func (s *Store) Close() error { return errors.Join(s.Leave(), s.o.Copy.Close()) }

// Leave ends following and closes the engine. The copy stays open.
func (s *Store) Leave() error {
	s.StopFollowing()
	s.gate.open(true)
	return s.o.Engine.Close()
}
