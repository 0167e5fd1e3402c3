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
