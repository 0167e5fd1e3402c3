package memory

import (
	"context"
	"fmt"
	"time"

	"headgate/internal/store"
)

// Acquire takes a lease.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	if ttl <= 0 || ttl > store.MaxLease {
		return nil, fmt.Errorf("acquire lease %s for %v: it is at most %v: %w", name, ttl, store.MaxLease, store.ErrTooLarge)
	}
	asked := time.Now()
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := s.writableLocked(); err != nil {
		return nil, err
	}
	now := s.clock()
	if held, ok := s.mu.leases[name]; ok && now.Before(held.until) {
		return nil, &store.Held{By: "this process", Until: held.until}
	}
	s.mu.token++
	s.mu.leases[name] = lease{s.mu.token, now.Add(ttl)}
	return store.NewLease(s, name, s.mu.token, ttl, asked), nil
}

// RenewLease makes a lease last longer.
func (s *Store) RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if held := s.mu.leases[name]; held.token != token || !s.clock().Before(held.until) {
		return store.ErrFenced
	}
	s.mu.leases[name] = lease{token, s.clock().Add(ttl)}
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

type lease struct {
	token uint64
	until time.Time
}
