package local

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"headgate/internal/store"
)

// The bounds of what is kept for watches that are behind.
const (
	maxFeed      = 4096
	maxFeedBytes = 8 << 20
)

// feed is the newest commits, for watches.
type feed struct {
	mu struct {
		sync.Mutex
		batches []store.Batch // in order
		bytes   int
		base    store.Revision // commits up to it are forgotten
		last    store.Revision
		wake    chan struct{} // closed at the next commit
		closed  bool
	}
}

func (f *feed) init() { f.mu.wake = make(chan struct{}) }

// restart forgets all commits up to a revision.
func (f *feed) restart(at store.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches, f.mu.bytes, f.mu.base, f.mu.last = nil, 0, at, at
	f.wakeLocked()
}

func (f *feed) wakeLocked() {
	close(f.mu.wake)
	f.mu.wake = make(chan struct{})
}

func (f *feed) last() store.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.last
}

// publish adds a commit.
func (f *feed) publish(b store.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches = append(f.mu.batches, b)
	f.mu.bytes += sizeOf(b)
	f.mu.last = b.Revision
	for len(f.mu.batches) > maxFeed || len(f.mu.batches) > 0 && (f.mu.bytes > maxFeedBytes || aged(f.mu.batches[0], b.Time)) {
		f.mu.bytes -= sizeOf(f.mu.batches[0])
		f.mu.base = f.mu.batches[0].Revision
		f.mu.batches[0] = store.Batch{}
		f.mu.batches = f.mu.batches[1:]
	}
	f.wakeLocked()
}

func sizeOf(b store.Batch) int {
	n := 128
	for _, e := range b.Put {
		n += 128 + len(e.Key) + len(e.Value)
	}
	for _, key := range b.Delete {
		n += 32 + len(key)
	}
	return n
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.wakeLocked()
}

// after returns the commits after a revision, and what is closed at the next.
func (f *feed) after(at store.Revision) ([]store.Batch, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mu.closed:
		return nil, nil, store.ErrClosed
	case at < f.mu.base || at > f.mu.last:
		return nil, nil, fmt.Errorf("watch after revision %d: %w", at, store.ErrTooOld)
	}
	i, _ := slices.BinarySearchFunc(f.mu.batches, at+1, func(b store.Batch, at store.Revision) int { return int(int64(b.Revision) - int64(at)) })
	return slices.Clone(f.mu.batches[i:]), f.mu.wake, nil
}

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
			batches, more, err := s.feed.after(after.Revision)
			if err != nil {
				yield(store.Batch{}, err)
				return
			}
			for _, b := range batches {
				after = b.Position
				if part, ok := under(prefix, b); ok && !yield(part, nil) {
					return
				}
			}
			if len(batches) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
			}
		}
	}
}

// under returns what a commit has done to keys with a prefix, as a copy.
func under(prefix string, b store.Batch) (part store.Batch, ok bool) {
	part = store.Batch{Position: b.Position, Before: b.Before, Time: b.Time, Who: b.Who, Why: b.Why}
	for _, e := range b.Put {
		if strings.HasPrefix(e.Key, prefix) {
			e.Value = bytes.Clone(e.Value)
			part.Put = append(part.Put, e)
		}
	}
	for _, key := range b.Delete {
		if strings.HasPrefix(key, prefix) {
			part.Delete = append(part.Delete, key)
		}
	}
	return part, prefix == "" || len(part.Put)+len(part.Delete) > 0
}
