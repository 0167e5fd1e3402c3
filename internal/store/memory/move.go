package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"headgate/internal/store"
)

// Export yields everything: see store.Store.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		items, err := s.items(ctx)
		if err != nil {
			yield(store.Item{}, err)
			return
		}
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

func (s *Store) items(ctx context.Context) ([]store.Item, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	mark := store.Mark{Position: s.mu.at, Time: s.clock(), Token: s.mu.token, Last: map[string]store.Sequence{}}
	items := []store.Item{{Mark: &mark}}
	for _, key := range s.keysLocked("") {
		e := s.mu.entries[key]
		e.Value = slices.Clone(e.Value)
		items = append(items, store.Item{Entry: &e})
	}
	for _, name := range slices.Sorted(maps.Keys(s.mu.streams)) {
		mark.Last[name] = s.mu.streams[name].last
		for _, r := range s.mu.streams[name].records {
			r.Data = slices.Clone(r.Data)
			items = append(items, store.Item{Record: &r})
		}
	}
	return items, nil
}

// Import fills the store: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	if err := s.beginImport(ctx); err != nil {
		return err
	}
	var mark *store.Mark
	entries, streams := map[string]store.Entry{}, map[string]*stream{}
	for item, err := range items {
		switch {
		case err != nil:
			return fmt.Errorf("import: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case item.Mark != nil:
			mark = item.Mark
			for name, last := range mark.Last {
				streams[name] = &stream{last: last}
			}
		case mark == nil:
			return errors.New("import: it does not begin with a mark")
		case item.Entry != nil:
			e := *item.Entry
			e.Value, e.TTL = slices.Clone(e.Value), 0
			entries[e.Key] = e
		case item.Record != nil && streams[item.Record.Stream] != nil:
			r := *item.Record
			r.Data = slices.Clone(r.Data)
			streams[r.Stream].records = append(streams[r.Stream].records, r)
		}
	}
	if mark == nil {
		return errors.New("import: it is empty")
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.mu.entries, s.mu.streams, s.mu.at, s.mu.token, s.mu.half = entries, streams, mark.Position, mark.Token, false
	for _, e := range entries {
		s.expiresLocked(e)
	}
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
	return nil
}

// beginImport marks the store as one that is being filled.
func (s *Store) beginImport(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.mu.at.Revision > 0 && !s.mu.half {
		return fmt.Errorf("import: %w", store.ErrNotEmpty)
	}
	s.mu.half = true
	return nil
}

// Freeze refuses changes: see store.Store.
func (s *Store) Freeze(ctx context.Context, place string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.mu.moved = place
	return nil
}
