package postgres

import (
	"context"
	"fmt"
	"time"

	"headgate/internal/store"
)

// Now returns the server's time: see store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	rows, _, err := s.call(ctx, "SELECT headgate.now()")
	if err != nil {
		return time.Time{}, err
	}
	return moment(rows[0][0]), nil
}

// Get returns one entry: see store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	rows, _, err := s.call(ctx, "SELECT key, revision, modified, expires, sealed FROM headgate.entry WHERE key = $1 AND (expires IS NULL OR expires > headgate.now())", text(key))
	if err != nil {
		return store.Entry{}, err
	}
	if len(rows) == 0 {
		return store.Entry{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	return s.entryOf(rows[0])
}

// entryOf reads the columns key, revision, modified, expires and sealed.
func (s *Store) entryOf(r row) (store.Entry, error) {
	e := store.Entry{Key: string(r[0]), Revision: store.Revision(number(r[1])), Modified: moment(r[2]), Expires: moment(r[3])}
	var err error
	e.Value, err = s.sealer().open(kindEntry, e.Key, uint64(e.Revision), r[4])
	return e, err
}

// end returns the first key after all those with a prefix; "" is after all.
func endOf(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0x7f {
			return prefix[:i] + string(prefix[i]+1)
		}
	}
	return "\x7f" // keys are of printable ASCII
}

// List returns keys without values: see store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	n = min(max(n, 1), store.MaxPage)
	rows, _, err := s.call(ctx, `SELECT key, revision, modified, expires, size FROM headgate.entry
		WHERE key >= $1 AND key < $2 AND key > $3 AND (expires IS NULL OR expires > headgate.now()) ORDER BY key LIMIT $4`,
		text(prefix), text(endOf(prefix)), text(after), integer(n))
	if err != nil {
		return nil, err
	}
	list := make([]store.Meta, len(rows))
	for i, r := range rows {
		list[i] = store.Meta{Key: string(r[0]), Revision: store.Revision(number(r[1])), Modified: moment(r[2]), Expires: moment(r[3]), Size: int(number(r[4]))}
	}
	return list, nil
}

// Snapshot returns entries and the position at which they are so: see store.Store. It is
// one statement, which sees one state.
func (s *Store) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	rows, _, err := s.call(ctx, `SELECT e.key, e.revision, e.modified, e.expires, e.sealed, h.revision, h.id FROM headgate.head h
		LEFT JOIN headgate.entry e ON e.key >= $1 AND e.key < $2 AND (e.expires IS NULL OR e.expires > headgate.now()) ORDER BY e.key`,
		text(prefix), text(endOf(prefix)))
	if err != nil {
		return nil, store.Position{}, err
	}
	at := store.Position{Revision: store.Revision(number(rows[0][5])), ID: store.IDOf(rows[0][6])}
	var all []store.Entry
	for _, r := range rows {
		if r[0] == nil {
			continue // there are none
		}
		e, err := s.entryOf(r)
		if err != nil {
			return nil, store.Position{}, err
		}
		all = append(all, e)
	}
	return all, at, nil
}

// Page returns records, the newest first: see store.Store.
func (s *Store) Page(ctx context.Context, stream string, before store.Sequence, n int) ([]store.Record, error) {
	if err := store.CheckName(stream); err != nil {
		return nil, err
	}
	n = min(max(n, 1), store.MaxPage)
	rows, _, err := s.call(ctx, `SELECT sequence, made, sealed FROM headgate.record
		WHERE stream = $1 AND ($2 = 0 OR sequence < $2) ORDER BY sequence DESC LIMIT $3`, text(stream), integer(before), integer(n))
	if err != nil {
		return nil, err
	}
	return s.recordsOf(stream, rows)
}

// recordsOf reads the columns sequence, made and sealed.
func (s *Store) recordsOf(stream string, rows []row) ([]store.Record, error) {
	list := make([]store.Record, 0, len(rows))
	for _, r := range rows {
		record := store.Record{Stream: stream, Sequence: store.Sequence(number(r[0])), Time: moment(r[1])}
		var err error
		if record.Data, err = s.sealer().open(kindRecord, stream, uint64(record.Sequence), r[2]); err != nil {
			return nil, err
		}
		list = append(list, record)
	}
	return list, nil
}
