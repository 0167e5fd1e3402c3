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
	"log/slog"
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
		still  bool           // the copy does not go on: see StopFollowing
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
	s.setStill(false)
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

// Close ends following, and closes the engine and the copy.
func (s *Store) Close() error { return errors.Join(s.Leave(), s.o.Copy.Close()) }

// Leave ends following and closes the engine. The copy stays open.
func (s *Store) Leave() error {
	s.StopFollowing()
	s.gate.open(true)
	return s.o.Engine.Close()
}
