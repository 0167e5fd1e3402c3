package local

import (
	"context"
	"fmt"
	"iter"

	"headgate/internal/store"
)

// Watch yields commits: see store.Store.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		if err := s.follows(ctx, after); err != nil {
			yield(store.Batch{}, err)
			return
		}
		for {
			if err := ctx.Err(); err != nil {
				yield(store.Batch{}, err)
				return
			}
			news, err := s.feed.After(after.Revision)
			if err == nil && !news.Whole {
				err = fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrTooOld)
			}
			if err != nil {
				yield(store.Batch{}, err)
				return
			}
			for _, b := range news.Batches {
				after = b.Position
				if part, ok := b.Under(prefix); ok && !yield(part, nil) {
					return
				}
			}
			if len(news.Batches) > 0 {
				continue
			}
			select {
			case <-news.Wake:
			case <-ctx.Done():
			}
		}
	}
}
