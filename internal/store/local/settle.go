package local

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
	"headgate/internal/store"
)

// settleLocked makes a database that was opened just now ready: what a crash has left
// undone is done, the index follows the files, and watches begin. writer and mu are
// held.
func (s *Store) settleLocked() error {
	s.unplaced, s.settled = nil, nil
	err := unlessNothing(guard(s.replayLocked))
	if err == nil {
		err = s.checkSeal()
	}
	if err == nil {
		err = guard(s.checkMirrorLocked)
	}
	if err == nil {
		_, err = s.followLocked()
	}
	if err != nil {
		s.feed.Restart(store.Position{})
		return err
	}
	return s.countLocked()
}

// countLocked counts the entries, and begins watches at the revision of state.db.
func (s *Store) countLocked() error {
	var at store.Revision
	err := guard(func() error {
		return s.mu.db.View(func(tx *bbolt.Tx) error {
			s.entries = tx.Bucket([]byte(bucketEntries)).Stats().KeyN
			meta := tx.Bucket([]byte(bucketMeta))
			at = revisionOf(meta)
			s.movedTo, s.half = string(meta.Get([]byte(metaMoved))), meta.Get([]byte(metaHalf)) != nil
			return nil
		})
	})
	s.feed.Restart(store.Position{Revision: at})
	return err
}

// replayLocked does with files what commits have decided before a crash. A file that
// is neither what it was nor what it was to be is a person's, and left alone.
func (s *Store) replayLocked() error {
	var steps []step
	err := s.mu.db.View(func(tx *bbolt.Tx) error {
		entries := tx.Bucket([]byte(bucketEntries))
		return tx.Bucket([]byte(bucketPending)).ForEach(func(k, v []byte) error {
			if len(v) < sha256.Size {
				return &damaged{what: fmt.Sprintf("what is to be done with the file of %q is cut off", k)}
			}
			st := step{key: string(k), staged: string(v[sha256.Size:])}
			copy(st.ref.digest[:], v)
			r, ok, err := rowOf(entries, st.key)
			if err != nil {
				return err
			}
			if st.name, err = fileOf(st.key); err == nil && s.isDue(st, r, ok) {
				steps = append(steps, st)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	s.unplaced = s.place(steps)
	if len(s.unplaced) > 0 || s.mu.trouble != nil {
		return nil
	}
	s.sweepStaged()
	return s.mu.db.Update(func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket([]byte(bucketPending)).Cursor().First(); k == nil {
			return errNothing
		}
		if err := tx.DeleteBucket([]byte(bucketPending)); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte(bucketPending))
		return err
	})
}

// errNothing ends a transaction in which there was nothing to do.
var errNothing = errors.New("nothing to do")

func unlessNothing(err error) error {
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// isDue reports whether a file still waits for what was decided about it.
func (s *Store) isDue(st step, r row, known bool) bool {
	if st.staged == "" {
		_, ref, err := s.readFile(st.name)
		return !known && err == nil && ref.digest == st.ref.digest
	}
	_, ref, err := s.readFile(st.staged)
	return known && err == nil && ref.digest == st.ref.digest && r.file.digest == st.ref.digest
}

// sweepStaged removes the files of commits that were not made.
func (s *Store) sweepStaged() {
	for _, pattern := range []string{filepath.Join(stagedName, "*"), file.Unfinished, dbName + ".restoring", dbName + ".copying"} {
		names, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			continue
		}
		for _, name := range names {
			os.Remove(name)
		}
	}
}

// sealName is the name of what tells whether the key is the right one.
const sealName = "meta/seal"

// checkSeal holds the key against what was sealed before.
func (s *Store) checkSeal() error {
	if s.keys.broken = s.keys.fault; s.keys.broken != nil {
		s.log.Error("secrets of the state cannot be opened, changes are refused", "error", s.keys.broken)
		return nil
	}
	return guard(func() error {
		err := s.mu.db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			if sealed := meta.Get([]byte(metaSeal)); sealed != nil {
				if _, err := s.keys.open(sealName, sealed); err != nil {
					s.keys.broken = fmt.Errorf("state directory %s: its secrets are %w", s.dir, errSealed)
					s.log.Error("secrets of the state cannot be opened, changes are refused", "error", s.keys.broken)
				}
				return errNothing
			}
			return meta.Put([]byte(metaSeal), s.keys.seal(sealName, []byte("headgate")))
		})
		return unlessNothing(err)
	})
}

// follow brings the index to what the files are: a person may have edited, added or
// removed some. writer is held.
func (s *Store) follow() error {
	s.mu.Lock()
	batch, err := s.followLocked()
	s.mu.Unlock()
	if err == nil && batch.Revision != 0 {
		s.feed.Add(batch)
	}
	return err
}

// edit is a file that is not what the index tells of.
type edit struct {
	key   string
	ref   fileRef
	value []byte
	gone  bool
	same  bool // only the file system's time is another
}

// followLocked is follow with mu held. The batch has revision 0 when nothing was
// changed.
func (s *Store) followLocked() (batch store.Batch, err error) {
	now := s.onDisk()
	for _, st := range s.unplaced {
		delete(now, st.key)
	}
	var edits []edit
	err = guard(func() (err error) {
		return s.mu.db.View(func(tx *bbolt.Tx) error {
			edits, err = s.edits(tx.Bucket([]byte(bucketEntries)), now)
			return err
		})
	})
	if err != nil || len(edits) == 0 {
		return store.Batch{}, err
	}
	if s.mirrors.Load() {
		return store.Batch{}, s.dropEdits(edits)
	}
	err = guard(func() error {
		return s.mu.db.Update(func(tx *bbolt.Tx) (err error) {
			batch, err = s.takeEdits(tx, edits)
			return err
		})
	})
	return batch, err
}

// edits returns what is to be taken up, in order of keys.
func (s *Store) edits(entries *bbolt.Bucket, now map[string]fileRef) (edits []edit, err error) {
	waits := map[string]bool{}
	for _, st := range s.unplaced {
		waits[st.key] = true
	}
	err = entries.ForEach(func(k, v []byte) error {
		r, err := decodeRow(k, v, false)
		if err != nil || r.flags&rowInFile == 0 {
			return err
		}
		key := string(k)
		found, ok := now[key]
		delete(now, key)
		switch {
		case waits[key]:
		case !ok:
			edits = append(edits, edit{key: key, gone: true})
		case !r.file.same(found):
			edits = s.addEdit(edits, key, &r)
		}
		return nil
	})
	for key := range now {
		edits = s.addEdit(edits, key, nil)
	}
	slices.SortFunc(edits, func(a, b edit) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	return edits, err
}

// addEdit reads a file that looks like another one.
func (s *Store) addEdit(edits []edit, key string, r *row) []edit {
	name, err := fileOf(key)
	if err != nil {
		return edits
	}
	data, ref, err := s.readFile(name)
	var value []byte
	if err == nil {
		value, err = s.keys.openFile(key, data)
	}
	if err != nil || len(value) > store.MaxChange {
		s.log.Warn("file in the state directory cannot be used", "file", filepath.Join(s.dir, name), "error", err)
		return edits
	}
	return append(edits, edit{key: key, ref: ref, value: value, same: r != nil && r.file.digest == ref.digest})
}

// takeEdits writes what was found as a commit.
func (s *Store) takeEdits(tx *bbolt.Tx, edits []edit) (batch store.Batch, err error) {
	entries := tx.Bucket([]byte(bucketEntries))
	batch = store.Batch{Time: s.Time(), Who: "file", Why: "files in the state directory were changed"}
	batch.Revision = revisionOf(tx.Bucket([]byte(bucketMeta))) + 1
	changed := false
	for _, e := range edits {
		old, was, err := rowOf(entries, e.key)
		if err != nil {
			return batch, err
		}
		switch {
		case e.gone:
			batch.Delete = append(batch.Delete, e.key)
			err, changed = entries.Delete([]byte(e.key)), true
			s.entries--
		case e.same:
			old.file = e.ref
			err = entries.Put([]byte(e.key), old.encode(e.key))
		default:
			r := row{flags: rowInFile, revision: batch.Revision, modified: e.ref.written.UTC(), expires: old.expires, size: len(e.value), file: e.ref}
			batch.Put = append(batch.Put, r.entry(e.key, e.value))
			err, changed = entries.Put([]byte(e.key), r.encode(e.key)), true
			if !was {
				s.entries++
			}
		}
		if err != nil {
			return batch, err
		}
	}
	if !changed {
		batch.Revision = 0
		return batch, nil
	}
	return batch, addToLog(tx, "", &batch)
}

// pause is how often writing is tried again where it was not possible.
const pause = 5 * time.Second

// tryAgain opens the directory for writing if that has become possible. writer is
// held.
func (s *Store) tryAgain() bool {
	now := s.clock()
	if now.Sub(s.tried) < pause {
		return false
	}
	s.tried = now
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reopenLocked(); err != nil {
		s.mu.trouble = err
		return false
	}
	s.log.Info("state can be written again", "dir", s.dir)
	return true
}

func (s *Store) reopenLocked() error {
	if s.lock == nil {
		if err := s.takeLock(nil); err != nil {
			return err
		}
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.keys.keep(s.dir); err != nil {
		return s.explain(err)
	}
	old := s.mu.db
	if err := s.openFileLocked(); err != nil {
		return err
	}
	guard(old.Close) // it was in memory only
	s.mu.trouble = nil
	return s.settleLocked()
}

// heal sets a damaged database aside while headgate runs. writer is held.
func (s *Store) heal(damage error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return store.ErrClosed
	}
	if err := guard(func() error { return s.mu.db.View(checkAll) }); err == nil {
		// It is intact, and the failure is a bug: nothing is discarded. Or it was repaired
		// meanwhile.
		return nil
	}
	s.mu.raw.Close() // the database may hold its own lock: it is left to itself
	before := s.feed.Position().Revision
	if s.mu.trouble == nil {
		s.mu.trouble = s.restoreLocked(damage)
	}
	if s.mu.trouble != nil {
		s.log.Error("state cannot be written: changes are refused, traffic is served", "error", s.mu.trouble)
		if err := s.openMemoryLocked(); err != nil {
			return err
		}
	}
	if err := guard(func() error { return s.mu.db.Update(func(tx *bbolt.Tx) error { return raise(tx, before) }) }); err != nil {
		return err
	}
	return s.settleLocked()
}

// raise brings the revision well above that of commits that are lost.
func raise(tx *bbolt.Tx, before store.Revision) error {
	meta := tx.Bucket([]byte(bucketMeta))
	return setPosition(meta, store.Position{Revision: max(revisionOf(meta), before) + leap})
}
