package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"headgate/internal/store"
)

// tellLocked adds a commit to the log and has watchers hear of it.
func (s *Store) tellLocked(at store.Position, b store.Batch) {
	b.Position, b.Before, b.Time = at, s.mu.at.ID, s.clock()
	s.mu.at, s.mu.made[at.ID] = at, at.Revision
	s.mu.history = append(s.mu.history, b)
	s.mu.size += sizeOf(b)
	for len(s.mu.history) > maxHistory || s.mu.size > maxHistorySize || b.Time.Sub(s.mu.history[0].Time) > store.LogAge {
		s.mu.size -= sizeOf(s.mu.history[0])
		delete(s.mu.made, s.mu.history[0].ID)
		s.mu.history = slices.Delete(s.mu.history, 0, 1)
	}
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

// sizeOf returns how many bytes the keys and values of a commit have.
func sizeOf(b store.Batch) (n int) {
	for _, e := range b.Put {
		n += len(e.Key) + len(e.Value)
	}
	for _, key := range b.Delete {
		n += len(key)
	}
	return n
}

// Watch yields commits.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		for {
			batches, changed, err := s.since(ctx, after)
			if err != nil {
				yield(store.Batch{}, err)
				return
			}
			for _, b := range batches {
				after = b.Position
				if part, ok := b.Under(prefix); ok && !yield(part, nil) {
					return
				}
			}
			if len(batches) > 0 {
				continue // what is forgotten meanwhile is noticed
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(store.Batch{}, ctx.Err())
				return
			}
		}
	}
}

// since returns the commits after a revision, and what is closed at the next.
func (s *Store) since(ctx context.Context, after store.Position) ([]store.Batch, <-chan struct{}, error) {
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	if err := s.followsLocked(after); err != nil {
		return nil, nil, err
	}
	i := 0
	for i < len(s.mu.history) && s.mu.history[i].Revision <= after.Revision {
		i++
	}
	return slices.Clone(s.mu.history[i:]), s.mu.changed, nil
}

// followsLocked returns why a watch cannot go on from a position.
func (s *Store) followsLocked(after store.Position) error {
	have, known := s.mu.at.ID, after.Revision == s.mu.at.Revision
	if i, ok := slices.BinarySearchFunc(s.mu.history, after.Revision, func(b store.Batch, r store.Revision) int { return cmp.Compare(b.Revision, r) }); ok {
		have, known = s.mu.history[i].ID, true
	}
	switch {
	case after.Revision > s.mu.at.Revision, known && after.ID != "" && after.ID != have:
		return fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrRewound)
	case after.Revision < s.mu.at.Revision && (len(s.mu.history) == 0 || s.mu.history[0].Revision > after.Revision+1):
		return fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrTooOld)
	}
	return nil
}
