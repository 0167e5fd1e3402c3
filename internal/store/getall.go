package store

import (
	"context"
	"errors"
)

// Getter is the part of a Store that GetAll needs.
type Getter interface {
	Get(ctx context.Context, key string) (Entry, error)
}

// GetAll returns the entries of keys one after the other, in their order. Keys without an entry
// are left out.
func GetAll(ctx context.Context, from Getter, keys []string) ([]Entry, error) {
	var all []Entry
	for _, key := range keys {
		e, err := from.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, e)
		}
	}
	return all, nil
}
