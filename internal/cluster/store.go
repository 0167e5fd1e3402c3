package cluster

import (
	"context"
	"fmt"
	"iter"
	"time"

	"headgate/internal/store"
)

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
		if s.Position().Revision >= at || s.isStill() {
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
