package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
	"headgate/internal/store"
)

// errMoved says that a file is not the one that was written here: a person has
// edited or removed it, and the index has to follow.
var errMoved = errors.New("the file was changed by hand")

// view reads in a transaction. After damage was mended, or a file changed by hand was
// taken up, it reads once more.
func (s *Store) view(ctx context.Context, read func(tx *bbolt.Tx) error) error {
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.viewOnce(read)
		switch {
		case try > 0 || !isDamage(err) && !errors.Is(err, errMoved):
			if isDamage(err) || errors.Is(err, errMoved) {
				return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
			}
			return err
		case isDamage(err):
			s.writer.Lock()
			err = s.heal(err)
			s.writer.Unlock()
		default:
			s.writer.Lock()
			err = s.follow()
			s.writer.Unlock()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
}

func (s *Store) viewOnce(read func(tx *bbolt.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mu.closed {
		return store.ErrClosed
	}
	return guard(func() error { return s.mu.db.View(read) })
}

// Get returns one entry: see store.Store.
func (s *Store) Get(ctx context.Context, key string) (e store.Entry, err error) {
	if err := store.CheckKey(key); err != nil {
		return e, err
	}
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		r, ok, err := rowOf(tx.Bucket([]byte(bucketEntries)), key)
		if err != nil {
			return err
		}
		if !ok || r.expired(s.Time()) {
			if !ok && s.appeared(key) {
				return errMoved
			}
			return fmt.Errorf("%s: %w", key, store.ErrNotFound)
		}
		e, err = s.entryOf(key, r)
		return err
	})
	return e, err
}

// appeared reports whether an entry that is not known has a file all the same.
func (s *Store) appeared(key string) bool {
	name, err := fileOf(key)
	if err != nil || name == "" {
		return false
	}
	_, _, err = s.readFile(name)
	return err == nil && !s.leaving(key)
}

// leaving reports whether a file is to be removed and could not be.
func (s *Store) leaving(key string) bool {
	for _, st := range s.unplaced {
		if st.key == key {
			return true
		}
	}
	return false
}

// entryOf returns an entry with its value, opened.
func (s *Store) entryOf(key string, r row) (e store.Entry, err error) {
	var value []byte
	switch {
	case r.flags&rowInFile != 0:
		value, err = s.valueInFile(key, r)
	case r.flags&rowSealed != 0:
		value, err = s.keys.open(key, r.value)
	default:
		value = bytes.Clone(r.value)
	}
	if errors.Is(err, errSealed) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return r.entry(key, value), err
}

// valueInFile reads the file of an entry. The error wraps errMoved when it is not the
// one that the index tells of.
func (s *Store) valueInFile(key string, r row) ([]byte, error) {
	name, err := fileOf(key)
	if err != nil {
		return nil, err
	}
	for _, st := range s.unplaced {
		if st.key == key {
			name = st.staged
		}
	}
	data, ref, err := s.readFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && ref.digest != r.file.digest:
		return nil, errMoved
	case err != nil:
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return s.keys.openFile(key, data)
}

// List returns keys without values: see store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, n int) (list []store.Meta, err error) {
	n = min(max(n, 1), store.MaxPage)
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		list = make([]store.Meta, 0, n)
		return s.each(tx, prefix, after, func(key string, r row) (more bool, err error) {
			list = append(list, r.meta(key))
			return len(list) < n, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// each calls do for the entries with a prefix that come after a key, in order, until
// it wants no more. Values in files are not read.
func (s *Store) each(tx *bbolt.Tx, prefix, after string, do func(key string, r row) (more bool, err error)) error {
	now := s.Time()
	cursor := tx.Bucket([]byte(bucketEntries)).Cursor()
	k, v := cursor.Seek([]byte(max(prefix, after)))
	if k != nil && string(k) == after {
		k, v = cursor.Next()
	}
	for ; k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = cursor.Next() {
		r, err := decodeRow(k, v, false)
		if err != nil {
			return err
		}
		if r.expired(now) {
			continue
		}
		if more, err := do(string(k), r); err != nil || !more {
			return err
		}
	}
	return nil
}

// Snapshot returns entries and the revision at which they are so: see store.Store.
func (s *Store) Snapshot(ctx context.Context, prefix string) (all []store.Entry, at store.Position, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		all, at = nil, positionOf(tx.Bucket([]byte(bucketMeta)))
		return s.each(tx, prefix, "", func(key string, r row) (bool, error) {
			e, err := s.entryOf(key, r)
			all = append(all, e)
			return true, err
		})
	})
	if err != nil {
		return nil, store.Position{}, err
	}
	return all, at, nil
}

// Files are the entries of a state directory that are files of their own, to be looked
// at without opening it. Nothing can be kept.
type Files struct {
	// Dir is the state directory.
	Dir string
	// Key is the key from outside of it that files may be sealed with, "" if there is
	// none: see Options.
	Key string
}

// Load returns the value of a key: see store.Values. In a directory that no headgate
// of this version has opened yet, what version 1 has kept is found too.
func (f Files) Load(key string) ([]byte, error) {
	value, err := ReadFile(f.Dir, key, f.Key)
	if errors.Is(err, fs.ErrNotExist) {
		for _, m := range moved {
			if m.key == key {
				return file.Read(filepath.Join(f.Dir, m.from), store.MaxChange, "an entry has less")
			}
		}
	}
	return value, err
}

// Keep refuses: nothing is written.
func (f Files) Keep(key string, _ []byte) error {
	return fmt.Errorf("keep %s: the state directory %s is only looked at", key, f.Dir)
}

// ReadFile returns the value of an entry that is a file of its own, without opening
// the directory: for commands that only look while headgate runs. Outside is the key
// that it may be sealed with, "" for none. The error wraps fs.ErrNotExist when there is
// no such file.
func ReadFile(dir, key, outside string) ([]byte, error) {
	name, err := fileOf(key)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("%s is not in a file of its own", key)
	}
	data, err := file.Read(filepath.Join(dir, name), maxOnDisk, "an entry has less")
	if err != nil || !bytes.HasPrefix(data, []byte(sealedMark)) {
		return data, err
	}
	keys, err := openKeys(dir, outside, false)
	if err == nil {
		data, err = keys.openFile(key, data)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
	}
	return data, nil
}
