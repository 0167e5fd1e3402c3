package postgres

import (
	"context"
	"fmt"
	"time"

	"headgate/internal/store"
)

// Acquire takes a lease by the server's clock: see store.Store.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	asked := time.Now()
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	if ttl <= 0 || ttl > store.MaxLease {
		return nil, fmt.Errorf("acquire lease %s for %v: it is at most %v: %w", name, ttl, store.MaxLease, store.ErrTooLarge)
	}
	rows, _, err := s.call(ctx, "SELECT what, token, holder, until FROM headgate.acquire($1, $2, $3)", text(name), text(s.node), integer(ttl.Microseconds()))
	if err != nil {
		return nil, err
	}
	r := rows[0]
	switch what := string(r[0]); what {
	case "made":
		return store.NewLease(s, name, number(r[1]), ttl, asked), nil
	case "held":
		return nil, &store.Held{By: string(r[2]), Until: moment(r[3])}
	default:
		return nil, (&outcome{what: what, name: string(r[2])}).closed()
	}
}

// RenewLease makes a lease last from now on: see store.LeaseEngine.
func (s *Store) RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error {
	rows, _, err := s.call(ctx, `UPDATE headgate.lease SET until = headgate.now() + $3 * interval '1 microsecond'
		WHERE name = $1 AND token = $2 AND until > headgate.now() RETURNING token`, text(name), integer(token), integer(ttl.Microseconds()))
	if err == nil && len(rows) == 0 {
		err = store.ErrFenced
	}
	return err
}

// ReleaseLease ends a lease: see store.LeaseEngine.
func (s *Store) ReleaseLease(ctx context.Context, name string, token uint64) error {
	_, _, err := s.call(ctx, "DELETE FROM headgate.lease WHERE name = $1 AND token = $2 RETURNING token", text(name), integer(token))
	return err
}
