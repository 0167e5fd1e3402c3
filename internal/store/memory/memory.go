// Package memory is a store that keeps nothing on disk: for tests of what stands on
// a store, and for a process that is to leave nothing behind. New makes one; it is
// gone with the process.
package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/store"
)

// maxHistory is how many commits a watch may be behind.
const maxHistory = 4096

// Store is a store in memory. Its methods may be called by several goroutines at
// once.
type Store struct {
	mu struct {
		sync.Mutex
		revision store.Revision
		entries  map[string]store.Entry
		streams  map[string]*stream
		leases   map[string]lease
		token    uint64
		history  []store.Batch // the newest commits, oldest first
		changed  chan struct{}
		closed   bool
	}
}

type stream struct {
	last    store.Sequence
	records []store.Record // oldest first
}

type lease struct {
	token uint64
	until time.Time
}

// New returns an empty store.
func New() *Store {
	s := &Store{}
	s.mu.entries, s.mu.streams, s.mu.leases = map[string]store.Entry{}, map[string]*stream{}, map[string]lease{}
	s.mu.changed = make(chan struct{})
	return s
}

// lock locks the store, or returns why it cannot be used; then it is not locked.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// findLocked returns the entry of a key, without those that have expired.
func (s *Store) findLocked(key string) (store.Entry, bool) {
	e, ok := s.mu.entries[key]
	if ok && !e.Expires.IsZero() && !time.Now().Before(e.Expires) {
		return store.Entry{}, false
	}
	return e, ok
}

// Get returns one entry.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.lock(ctx); err != nil {
		return store.Entry{}, err
	}
	defer s.mu.Unlock()
	e, ok := s.findLocked(key)
	if !ok {
		return store.Entry{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	e.Value = slices.Clone(e.Value)
	return e, nil
}

// keysLocked returns the keys with a prefix, in order.
func (s *Store) keysLocked(prefix string) []string {
	var keys []string
	for key := range s.mu.entries {
		if _, ok := s.findLocked(key); ok && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// List returns keys without values.
func (s *Store) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []store.Meta
	for _, key := range s.keysLocked(prefix) {
		if key > after && len(all) < min(n, store.MaxPage) {
			e := s.mu.entries[key]
			all = append(all, store.Meta{Key: key, Size: len(e.Value), Expires: e.Expires, Revision: e.Revision, Modified: e.Modified})
		}
	}
	return all, nil
}

// Snapshot returns all entries with a prefix.
func (s *Store) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Revision, error) {
	if err := s.lock(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	var all []store.Entry
	for _, key := range s.keysLocked(prefix) {
		e := s.mu.entries[key]
		e.Value = slices.Clone(e.Value)
		all = append(all, e)
	}
	return all, s.mu.revision, nil
}

// Commit makes a change whole or not at all.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	for _, cond := range c.If {
		if e, _ := s.findLocked(cond.Key); e.Revision != cond.Revision {
			return 0, &store.Conflict{Key: cond.Key, Have: e.Revision}
		}
	}
	if l := c.Under; l != nil {
		if held := s.mu.leases[l.Name]; held.token != l.Token || !time.Now().Before(held.until) {
			return 0, store.ErrFenced
		}
	}
	s.mu.revision++
	batch := store.Batch{Revision: s.mu.revision, Delete: slices.Clone(c.Delete), Who: c.Who, Why: c.Why}
	for _, e := range c.Put {
		e.Value, e.Revision, e.Modified = slices.Clone(e.Value), s.mu.revision, time.Now()
		s.mu.entries[e.Key] = e
		batch.Put = append(batch.Put, e)
	}
	for _, key := range c.Delete {
		delete(s.mu.entries, key)
	}
	for _, r := range c.Append {
		s.appendLocked(r.Stream, r.Data)
	}
	s.boundSessionsLocked()
	if s.mu.history = append(s.mu.history, batch); len(s.mu.history) > maxHistory {
		s.mu.history = slices.Delete(s.mu.history, 0, 1)
	}
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
	return s.mu.revision, nil
}

// boundSessionsLocked removes the oldest sessions over their bound.
func (s *Store) boundSessionsLocked() {
	keys := s.keysLocked(store.PrefixSession)
	slices.SortFunc(keys, func(a, b string) int { return int(int64(s.mu.entries[a].Revision) - int64(s.mu.entries[b].Revision)) })
	for len(keys) > store.MaxSessions {
		delete(s.mu.entries, keys[0])
		keys = keys[1:]
	}
}

func (s *Store) appendLocked(name string, data []byte) store.Sequence {
	st := s.mu.streams[name]
	if st == nil {
		st = &stream{}
		s.mu.streams[name] = st
	}
	st.last++
	st.records = append(st.records, store.Record{Stream: name, Sequence: st.last, Time: time.Now(), Data: slices.Clone(data)})
	if _, most := store.Retention(name); len(st.records) > most {
		st.records = slices.Delete(st.records, 0, len(st.records)-most)
	}
	return st.last
}

// Watch yields commits.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Revision) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		for {
			batches, changed, err := s.since(ctx, prefix, after)
			if err != nil {
				yield(store.Batch{}, err)
				return
			}
			for _, b := range batches {
				after = b.Revision
				if len(b.Put)+len(b.Delete) > 0 && !yield(b, nil) {
					return
				}
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
func (s *Store) since(ctx context.Context, prefix string, after store.Revision) ([]store.Batch, <-chan struct{}, error) {
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	if after < s.mu.revision && (len(s.mu.history) == 0 || s.mu.history[0].Revision > after+1) {
		return nil, nil, store.ErrTooOld
	}
	var all []store.Batch
	for _, b := range s.mu.history {
		if b.Revision <= after {
			continue
		}
		seen := store.Batch{Revision: b.Revision, Who: b.Who, Why: b.Why}
		for _, e := range b.Put {
			if strings.HasPrefix(e.Key, prefix) {
				e.Value = slices.Clone(e.Value)
				seen.Put = append(seen.Put, e)
			}
		}
		for _, key := range b.Delete {
			if strings.HasPrefix(key, prefix) {
				seen.Delete = append(seen.Delete, key)
			}
		}
		all = append(all, seen)
	}
	return all, s.mu.changed, nil
}

// Acquire takes a lease.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	asked := time.Now()
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if held, ok := s.mu.leases[name]; ok && asked.Before(held.until) {
		return nil, &store.Held{By: "this process", Until: held.until}
	}
	s.mu.token++
	s.mu.leases[name] = lease{s.mu.token, asked.Add(ttl)}
	return store.NewLease(s, name, s.mu.token, ttl, asked), nil
}

// RenewLease makes a lease last longer.
func (s *Store) RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if held := s.mu.leases[name]; held.token != token || !time.Now().Before(held.until) {
		return store.ErrFenced
	}
	s.mu.leases[name] = lease{token, time.Now().Add(ttl)}
	return nil
}

// ReleaseLease ends a lease.
func (s *Store) ReleaseLease(ctx context.Context, name string, token uint64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.mu.leases[name].token == token {
		delete(s.mu.leases, name)
	}
	return nil
}

// Append adds records to a stream.
func (s *Store) Append(ctx context.Context, name string, records [][]byte) (store.Sequence, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	var last store.Sequence
	for _, data := range records {
		last = s.appendLocked(name, data)
	}
	return last, nil
}

// Page returns records, the newest first.
func (s *Store) Page(ctx context.Context, name string, before store.Sequence, n int) ([]store.Record, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	st := s.mu.streams[name]
	if st == nil {
		return nil, nil
	}
	var all []store.Record
	for _, r := range slices.Backward(st.records) {
		if (before == 0 || r.Sequence < before) && len(all) < min(n, store.MaxPage) {
			all = append(all, r)
		}
	}
	return all, nil
}

// Close ends all watches.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed {
		s.mu.closed = true
		close(s.mu.changed)
	}
	return nil
}
