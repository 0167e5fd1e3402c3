package local

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// maxLeases is how many leases are held at a time.
const maxLeases = 4096

// leases are those that are held. They end with the process, which is the only one
// that works on this state; their tokens go on growing.
type leases struct {
	mu   sync.Mutex
	held map[string]*held // by name; guarded by mu
}

type held struct {
	token uint64
	until time.Time
}

// Acquire takes a lease: see store.Store.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	asked := time.Now()
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	if ttl <= 0 || ttl > store.MaxLease {
		return nil, fmt.Errorf("acquire lease %s for %v: it is at most %v: %w", name, ttl, store.MaxLease, store.ErrTooLarge)
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.changeable(ctx); err != nil {
		return nil, err
	}
	now := s.Time()
	if err := s.leases.free(name, s.node, now); err != nil {
		return nil, err
	}
	token, err := s.nextToken()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	s.leases.mu.Lock()
	s.leases.held[name] = &held{token: token, until: now.Add(ttl)}
	s.leases.mu.Unlock()
	return store.NewLease(s, name, token, ttl, asked), nil
}

// free returns *store.Held if a lease is held, and removes those that ended.
func (l *leases) free(name, node string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, h := range l.held {
		if !now.Before(h.until) {
			delete(l.held, other)
		}
	}
	if h := l.held[name]; h != nil {
		return &store.Held{By: node, Until: h.until}
	}
	if len(l.held) >= maxLeases {
		return fmt.Errorf("%d leases are held already: %w", maxLeases, store.ErrTooLarge)
	}
	return nil
}

// nextToken returns a token that no lease had before, this process's or another's.
func (s *Store) nextToken() (token uint64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = guard(func() error {
		return s.mu.db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			if v := meta.Get([]byte(metaToken)); len(v) == 8 {
				token = binary.BigEndian.Uint64(v)
			}
			token++
			return meta.Put([]byte(metaToken), number(token))
		})
	})
	return token, err
}

// check returns an error that wraps store.ErrFenced when a lease is not held.
func (l *leases) check(lease *store.Lease, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[lease.Name]; h == nil || h.token != lease.Token || !now.Before(h.until) {
		return fmt.Errorf("commit under lease %s: %w", lease.Name, store.ErrFenced)
	}
	return nil
}

// RenewLease makes a lease last from now on: see store.LeaseEngine.
func (s *Store) RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := s.Time()
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	h := s.leases.held[name]
	if h == nil || h.token != token || !now.Before(h.until) {
		return store.ErrFenced
	}
	h.until = now.Add(ttl)
	return nil
}

// ReleaseLease ends a lease: see store.LeaseEngine.
func (s *Store) ReleaseLease(_ context.Context, name string, token uint64) error {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	if h := s.leases.held[name]; h != nil && h.token == token {
		delete(s.leases.held, name)
	}
	return nil
}
