package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate/internal/store"
)

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
	s.wake()
}

// wake has those look again who wait for the copy.
func (s *Store) wake() {
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
	return store.GetAll(ctx, s.o.Engine, keys)
}
