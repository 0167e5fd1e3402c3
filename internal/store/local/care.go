package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
	"headgate/internal/store"
)

// How often the state is looked after, and how many copies of state.db are kept.
const (
	careInterval = 30 * time.Second
	copyInterval = 24 * time.Hour
	keptCopies   = 3
	stampLayout  = "20060102T150405.000"
)

// lookAfter removes what has expired, follows files that a person edits, and copies
// state.db once a day, until its context ends.
func (s *Store) lookAfter(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(careInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.care(ctx)
		}
	}
}

// care is one round of looking after.
func (s *Store) care(ctx context.Context) {
	if s.mirrors.Load() {
		s.careForCopy()
		return
	}
	if err := s.sweep(ctx); err != nil && !errors.Is(err, store.ErrMoved) && !errors.Is(err, errHalf) {
		s.log.Error("expired entries of the state are not removed", "error", err)
	}
	s.writer.Lock()
	err := s.finish()
	if err == nil {
		err = s.follow()
	}
	s.writer.Unlock()
	if err != nil {
		s.log.Error("files of the state are not followed", "error", err)
	}
	if s.Trouble() == nil && s.copyDue() {
		if err := s.copy(); err != nil {
			s.log.Error("state.db is not copied", "error", err)
		}
	}
}

// careForCopy is one round where what is here comes from another store.
func (s *Store) careForCopy() {
	s.writer.Lock()
	err := s.finish()
	s.writer.Unlock()
	if err == nil && s.Trouble() == nil && s.copyDue() {
		err = s.copy()
	}
	if err != nil {
		s.log.Error("the state directory is not looked after", "error", err)
	}
}

// sweep removes the entries that have expired, as commits of the engine.
func (s *Store) sweep(ctx context.Context) error {
	for {
		var keys []string
		now := s.Time()
		err := s.view(ctx, func(tx *bbolt.Tx) error {
			keys = nil
			cursor := tx.Bucket([]byte(bucketExpires)).Cursor()
			for k, _ := cursor.First(); len(k) > 8 && len(keys) < store.MaxOperations; k, _ = cursor.Next() {
				if moment(binary.BigEndian.Uint64(k)).After(now) {
					break
				}
				keys = append(keys, string(k[8:]))
			}
			return nil
		})
		if err != nil || len(keys) == 0 || s.Trouble() != nil {
			return err
		}
		if err := s.removeExpired(ctx, keys, now); err != nil {
			return err
		}
	}
}

func (s *Store) removeExpired(ctx context.Context, keys []string, now time.Time) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(ctx); err != nil {
		return err
	}
	still := keys[:0]
	err := s.viewOnce(func(tx *bbolt.Tx) error {
		for _, key := range keys {
			if r, ok, err := rowOf(tx.Bucket([]byte(bucketEntries)), key); err != nil {
				return err
			} else if ok && r.expired(now) && !slices.Contains(still, key) {
				still = append(still, key)
			}
		}
		return nil
	})
	if err != nil || len(still) == 0 {
		return err
	}
	return s.make(&making{s: s, change: store.Change{Delete: still, Who: "store", Why: "expired"}, now: now, byEngine: true})
}

// finish puts files in their places that could not be put there before. writer is
// held.
func (s *Store) finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unplaced) == 0 || s.mu.trouble != nil {
		return nil
	}
	done := s.unplaced
	s.unplaced = s.place(s.unplaced)
	for _, st := range done {
		if !slices.Contains(s.unplaced, st) {
			s.settled = append(s.settled, st.key)
		}
	}
	return nil
}

// copies returns the copies of state.db, the newest first.
func (s *Store) copies() []string {
	names, err := filepath.Glob(filepath.Join(s.dir, dbName+".copy-*"))
	if err != nil {
		return nil
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

func (s *Store) copyDue() bool {
	names := s.copies()
	if len(names) == 0 {
		return s.feed.Position().Revision > 0
	}
	info, err := os.Stat(names[0])
	return err == nil && s.clock().Sub(info.ModTime()) >= copyInterval
}

// copy writes a copy of state.db while it is in use, reads it as a whole, and puts
// it among the copies.
func (s *Store) copy() error {
	part := filepath.Join(s.dir, dbName+".copying")
	defer os.Remove(part) // gone already when all went well
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return s.explain(err)
	}
	err = s.writeDB(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = verify(part)
	}
	if err == nil {
		err = os.Rename(part, filepath.Join(s.dir, dbName+".copy-"+s.clock().UTC().Format(stampLayout)))
	}
	if err == nil {
		err = file.SyncDir(s.dir)
	}
	if err != nil {
		return s.explain(err)
	}
	if all := s.copies(); len(all) > keptCopies {
		for _, name := range all[keptCopies:] {
			os.Remove(name)
		}
	}
	return nil
}

// writeDB writes the database as it is at one moment.
func (s *Store) writeDB(w io.Writer) error {
	return s.viewOnce(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// moved is what version 1 has kept in other places.
var moved = []struct{ from, key string }{
	{"affinity.key", store.KeySticky},
	{"self-signed.pem", store.KeySelfSigned},
}

// takeOver moves the files of version 1 to where this version keeps them. What is
// there already is not touched.
func (s *Store) takeOver() {
	for _, m := range moved {
		name, err := fileOf(m.key)
		if err != nil {
			continue
		}
		from, to := filepath.Join(s.dir, m.from), filepath.Join(s.dir, name)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		data, err := file.Read(from, store.MaxChange, "an entry has less")
		if err != nil || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		if err := os.Rename(from, to); err != nil {
			s.log.Error("state of an earlier version is not taken over", "file", from, "error", err)
			continue
		}
		s.log.Info("state of an earlier version was taken over", "file", from, "to", to)
	}
}
