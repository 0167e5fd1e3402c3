package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// metaMirror is the key of the bucket meta that names the store which this one mirrors.
const metaMirror = "mirror"

// ErrOwn says that a state directory has a state of its own, which is not to be replaced.
var ErrOwn = errors.New("the state directory has a state of its own")

// Other is the error of a state directory that is a copy of another store than the one that
// it is to be a copy of.
type Other struct {
	// Of is the name of the store that it is a copy of.
	Of string
}

// Error names the store that it is a copy of.
func (o *Other) Error() string { return "the state directory is a copy of " + o.Of }

// ErrCopy means that a change was made in a state directory that is a copy of another store,
// where it would be lost. It wraps store.ErrUnavailable.
var ErrCopy = fmt.Errorf("%w: the state directory is a copy of what several machines share; start headgate and make the change there", store.ErrUnavailable)

// Mirror makes the store the copy of another one, which is identified by a name: from now on
// its entries come from Follow and Reset only. It neither removes what has expired nor takes
// up files that a person edits. The error wraps ErrOwn if the directory has a state of its
// own, and is an *Other if it is a copy of another store.
func (s *Store) Mirror(ctx context.Context, of string) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	known, own := "", false
	err := s.viewOnce(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		known, own = string(meta.Get([]byte(metaMirror))), revisionOf(meta) > 0
		return nil
	})
	switch {
	case err != nil:
		return err
	case known != "" && known != of:
		return &Other{known}
	case known == "" && own:
		return ErrOwn
	}
	return s.mirrorLocked(ctx, of)
}

// Adopt makes a store the copy of another one that was filled with its own state.
func (s *Store) Adopt(ctx context.Context, of string) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	return s.mirrorLocked(ctx, of)
}

// AdoptAnew is Adopt for a store whose state was committed by itself, or comes from another
// history: nothing is known of where it is, so all of it is compared.
func (s *Store) AdoptAnew(ctx context.Context, of string) error {
	if err := s.Adopt(ctx, of); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	return s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		return setPosition(tx.Bucket([]byte(bucketMeta)), store.Position{})
	}})
}

// SetTime notes the present time of the store that this one mirrors.
func (s *Store) SetTime(now time.Time) { s.ahead.Store(int64(now.Sub(s.clock()))) }

// Time returns the time of the engine's clock: that of this machine, or of the store that this
// one mirrors as far as it is known. See store.Time.
func (s *Store) Time() time.Time {
	now := s.clock()
	if s.mirrors.Load() {
		now = now.Add(time.Duration(s.ahead.Load()))
	}
	return now
}

// Mirrors reports whether the store is the copy of another.
func (s *Store) Mirrors() bool { return s.mirrors.Load() }

// MirrorOf returns the name of the store that this one is a copy of, "" if it is none.
func (s *Store) MirrorOf(ctx context.Context) (of string, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		of = string(tx.Bucket([]byte(bucketMeta)).Get([]byte(metaMirror)))
		return nil
	})
	return of, err
}

// Own ends that the store is the copy of another: changes are committed here from now on,
// and continue the chain.
func (s *Store) Own(ctx context.Context) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	err := s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketMeta)).Delete([]byte(metaMirror))
	}})
	if err == nil {
		s.mirrors.Store(false)
	}
	return err
}

// Last returns the sequence of the last record of a stream; 0 if there was none.
func (s *Store) Last(ctx context.Context, stream string) (last store.Sequence, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(bucketStreams)).Bucket([]byte(stream)); b != nil {
			last = store.Sequence(b.Sequence())
		}
		return nil
	})
	return last, err
}

// After returns records of a stream after a sequence, the oldest first, at most
// store.MaxPage of them.
func (s *Store) After(ctx context.Context, stream string, after store.Sequence) ([]store.Record, error) {
	return source{s}.Records(ctx, stream, after, ^store.Sequence(0))
}

// FollowRecords writes records of the store that this one mirrors, with their sequences and
// times. Those that are here already are replaced.
func (s *Store) FollowRecords(ctx context.Context, records []store.Record) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	return s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		for _, r := range records {
			if err := putRecord(tx, r); err != nil {
				return err
			}
			stream := tx.Bucket([]byte(bucketStreams)).Bucket([]byte(r.Stream))
			if uint64(r.Sequence) > stream.Sequence() {
				if err := stream.SetSequence(uint64(r.Sequence)); err != nil {
					return err
				}
			}
			if err := trim(stream, r.Stream, stream.Sequence(), s.Time()); err != nil {
				return err
			}
		}
		return nil
	}})
}

// RestartStreams removes all records: those of another history take their places.
func (s *Store) RestartStreams(ctx context.Context) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	return s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket([]byte(bucketStreams)); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte(bucketStreams))
		return err
	}})
}

func (s *Store) mirrorLocked(ctx context.Context, of string) error {
	s.movedTo, s.half = "", false
	if err := s.writable(ctx); err != nil {
		s.mirrors.Store(true) // a directory that cannot be written to is a copy, too
		return err
	}
	err := s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		return errors.Join(meta.Put([]byte(metaMirror), []byte(of)), meta.Delete([]byte(metaMoved)), meta.Delete([]byte(metaHalf)))
	}})
	s.mirrors.Store(err == nil)
	return err
}

// checkMirrorLocked finds out whether the database that was opened is a copy of another.
func (s *Store) checkMirrorLocked() error {
	return s.mu.db.View(func(tx *bbolt.Tx) error {
		s.mirrors.Store(tx.Bucket([]byte(bucketMeta)).Get([]byte(metaMirror)) != nil)
		return nil
	})
}

// dropEdits forgets entries whose files a person has changed in a copy: they are fetched
// again, as what is shared is changed where all machines see it.
func (s *Store) dropEdits(edits []edit) error {
	return guard(func() error {
		return s.mu.db.Update(func(tx *bbolt.Tx) error {
			for _, e := range edits {
				if e.same {
					continue
				}
				s.log.Warn("file in the state directory was changed by hand; it is fetched from the shared store again at the next start", "key", e.key)
				if err := tx.Bucket([]byte(bucketEntries)).Delete([]byte(e.key)); err != nil {
					return err
				}
			}
			return setPosition(tx.Bucket([]byte(bucketMeta)), store.Position{})
		})
	})
}

// Position returns where the chain of commits ends here.
func (s *Store) Position(ctx context.Context) (at store.Position, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		at = positionOf(tx.Bucket([]byte(bucketMeta)))
		return nil
	})
	return at, err
}

// Follow takes a commit of the store that this one mirrors, with its revision and times.
// What is newer here already stays.
func (s *Store) Follow(ctx context.Context, b store.Batch) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	newer := func(key string) (is bool, err error) {
		err = s.viewOnce(func(tx *bbolt.Tx) error {
			r, ok, err := rowOf(tx.Bucket([]byte(bucketEntries)), key)
			is = ok && r.revision > b.Revision
			return err
		})
		return is, err
	}
	var c store.Change
	for _, e := range b.Put {
		if is, err := newer(e.Key); err != nil {
			return err
		} else if !is {
			c.Put = append(c.Put, e)
		}
	}
	for _, key := range b.Delete {
		if is, err := newer(key); err != nil {
			return err
		} else if !is {
			c.Delete = append(c.Delete, key)
		}
	}
	m := &making{s: s, change: c, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error { return appendLog(tx, &b) }}
	if err := s.make(m); err != nil {
		return err
	}
	s.feed.Add(b)
	return nil
}

// Reset writes entries as they are in the store that this one mirrors, and removes others.
// It is a part of bringing this one to a state of that: At says where it is then, nil before
// the last part. Watches end with store.ErrTooOld after it.
func (s *Store) Reset(ctx context.Context, put []store.Entry, gone []string, at *store.Position) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	m := &making{s: s, change: store.Change{Put: put, Delete: slices.Clone(gone)}, now: s.Time(), byEngine: true, exact: true}
	if at != nil {
		m.also = func(tx *bbolt.Tx) error {
			for _, name := range []string{bucketLog, bucketIDs} {
				if tx.Bucket([]byte(name)) == nil {
					continue
				}
				if err := tx.DeleteBucket([]byte(name)); err != nil {
					return err
				}
			}
			return setPosition(tx.Bucket([]byte(bucketMeta)), *at)
		}
	}
	if err := s.make(m); err != nil {
		return fmt.Errorf("follow the shared store: %w", err)
	}
	if at != nil {
		s.feed.Restart(*at)
	}
	return nil
}
