package store

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// Values keeps single values: what parts need that know nothing of commits. Its
// methods may be called by several goroutines at once. They end after a while.
type Values interface {
	// Load returns the value of a key. The error wraps fs.ErrNotExist when there is
	// none.
	Load(key string) ([]byte, error)
	// Keep makes a value the one of a key, durably.
	Keep(key string, value []byte) error
}

// valuesTimeout is how long one call of Values takes at most.
const valuesTimeout = 10 * time.Second

// ValuesOf returns the values of a store.
func ValuesOf(s Store) Values { return values{s} }

type values struct{ store Store }

func (v values) Load(key string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), valuesTimeout)
	defer stop()
	e, err := v.store.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		err = errors.Join(err, fs.ErrNotExist)
	}
	return e.Value, err
}

func (v values) Keep(key string, value []byte) error {
	ctx, stop := context.WithTimeout(context.Background(), valuesTimeout)
	defer stop()
	_, err := v.store.Commit(ctx, Change{Put: []Entry{{Key: key, Value: value}}})
	return err
}

// Once returns the value of a key. If there is none, it is the one that make returns, which
// is written unless another machine is first: then it is that machine's.
func Once(ctx context.Context, s Store, key string, make func() []byte) ([]byte, error) {
	for {
		e, err := s.Get(ctx, key)
		if !errors.Is(err, ErrNotFound) {
			return e.Value, err
		}
		value := make()
		_, err = s.Commit(ctx, Change{If: []Condition{{Key: key}}, Put: []Entry{{Key: key, Value: value}}, Why: "first of its kind"})
		if err == nil {
			return value, nil
		}
		if !errors.As(err, new(*Conflict)) {
			return nil, err
		}
		// The other's arrives at the copy of this machine in a moment.
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
