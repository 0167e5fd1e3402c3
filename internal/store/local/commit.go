package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
	"headgate/internal/store"
)

// maxEntries is how many keys are kept in all.
const maxEntries = 200_000

// Commit makes a change: see store.Store.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.changeable(ctx); err != nil {
		return 0, err
	}
	m := &making{s: s, change: c, now: s.Time()}
	if err := s.make(m); err != nil {
		return 0, err
	}
	return m.batch.Revision, nil
}

// Now returns the time of the engine's clock: see store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mu.closed {
		return time.Time{}, store.ErrClosed
	}
	return s.Time(), ctx.Err()
}

// writable returns why a commit cannot be tried. Where nothing could be written it
// looks whether that has changed. The writer's lock is held.
func (s *Store) writable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	closed, trouble := s.mu.closed, s.mu.trouble
	s.mu.RUnlock()
	switch {
	case closed:
		return store.ErrClosed
	case trouble != nil && !s.tryAgain():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, trouble)
	case s.keys.broken != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, s.keys.broken)
	case s.half:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errHalf)
	case s.movedTo != "":
		return fmt.Errorf("%w to %s", store.ErrMoved, s.movedTo)
	}
	return nil
}

// changeable returns why a change of a caller is refused. The writer's lock is held.
func (s *Store) changeable(ctx context.Context) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	if s.mirrors.Load() {
		return ErrCopy
	}
	return nil
}

// making is a commit on its way.
type making struct {
	s      *Store
	change store.Change
	now    time.Time
	// byEngine marks a commit of the engine itself, which nothing bounds and which
	// may write what is in memory only.
	byEngine bool
	// exact writes entries as they are, with their revisions and times, and makes no
	// revision: what another engine has committed.
	exact bool
	// also does more in the same transaction, nil for nothing.
	also func(tx *bbolt.Tx) error

	batch  store.Batch
	steps  []step
	open   []*os.File // staged and not synced yet
	added  int        // entries more than before
	staged int
}

// make makes a commit, once more after damage was mended. The writer's lock is held.
func (s *Store) make(m *making) error {
	err := s.makeOnce(m)
	if isDamage(err) {
		if herr := s.heal(err); herr != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, herr)
		}
		*m = making{s: s, change: m.change, now: m.now, byEngine: m.byEngine, exact: m.exact, also: m.also}
		err = s.makeOnce(m)
	}
	var conflict *store.Conflict
	switch {
	case err == nil:
		s.entries += m.added
		if !m.exact {
			s.feed.Add(m.batch)
		}
		return nil
	case errors.Is(err, errMade):
		return nil
	case errors.As(err, &conflict), errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrFenced):
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, s.explain(err))
}

// makeOnce writes a commit. Entries in files change atomically with the index for readers.
func (s *Store) makeOnce(m *making) error {
	exclusive := m.touchesFiles()
	if exclusive {
		s.mu.Lock()
		defer s.mu.Unlock()
	} else {
		s.mu.RLock()
		defer s.mu.RUnlock()
	}
	s.point("begin")
	err := guard(func() error { return s.mu.db.Update(m.write) })
	if err != nil {
		m.closeStaged() // those of a commit that failed before they were synced
		s.unstage(m.steps)
		return err
	}
	s.point("committed")
	if len(m.steps) > 0 {
		s.unplaced = append(s.unplaced, s.place(m.steps)...)
		for _, st := range m.steps {
			s.settled = append(s.settled, st.key)
		}
	}
	return nil
}

// unstage removes the files of a commit that was not made.
func (s *Store) unstage(steps []step) {
	for _, st := range steps {
		if st.staged != "" {
			os.Remove(filepath.Join(s.dir, st.staged))
		}
	}
}

func (m *making) touchesFiles() bool {
	for _, e := range m.change.Put {
		if name, err := fileOf(e.Key); name != "" || err != nil {
			return true
		}
	}
	for _, key := range m.change.Delete {
		if name, err := fileOf(key); name != "" || err != nil {
			return true
		}
	}
	return false
}

// write is the transaction of a commit.
func (m *making) write(tx *bbolt.Tx) error {
	entries := tx.Bucket([]byte(bucketEntries))
	if at, made, err := madeAs(tx, m.change.ID); err != nil || made {
		m.batch.Revision = at
		return errors.Join(err, errMade)
	}
	if l := m.change.Under; l != nil {
		if err := m.s.leases.check(l, m.now); err != nil {
			return err
		}
	}
	if err := m.check(entries); err != nil {
		return err
	}
	m.batch = store.Batch{Time: m.now, Who: m.change.Who, Why: m.change.Why}
	if !m.exact {
		if err := addToLog(tx, m.change.ID, &m.batch); err != nil {
			return err
		}
	}
	for _, e := range m.change.Put {
		if err := m.put(tx, entries, e); err != nil {
			return err
		}
	}
	for _, key := range m.change.Delete {
		if err := m.remove(tx, entries, key); err != nil {
			return err
		}
	}
	if err := m.bound(tx, entries); err != nil {
		return err
	}
	for _, r := range m.change.Append {
		if _, err := m.append(tx, r); err != nil {
			return err
		}
	}
	if err := m.removeStaged(tx); err != nil {
		return err
	}
	if m.also != nil {
		if err := m.also(tx); err != nil {
			return err
		}
	}
	if m.staged > 0 {
		if err := m.syncStaged(); err != nil {
			return err
		}
	}
	m.s.point("decide")
	return nil
}

// syncStaged waits until the staged files and their names are on the disk.
func (m *making) syncStaged() error {
	failed := make([]error, len(m.open)+1)
	var all sync.WaitGroup
	for i, f := range m.open { // at once, so that the disk can take them together
		all.Go(func() { failed[i] = f.Sync() })
	}
	failed[len(m.open)] = file.SyncDir(filepath.Join(m.s.dir, stagedName))
	all.Wait()
	return errors.Join(append(failed, m.closeStaged())...)
}

// closeStaged closes the staged files that are open.
func (m *making) closeStaged() error {
	var failed []error
	for _, f := range m.open {
		failed = append(failed, f.Close())
	}
	m.open = nil
	return errors.Join(failed...)
}

func revisionOf(meta *bbolt.Bucket) store.Revision {
	if v := meta.Get([]byte(metaRevision)); len(v) == 8 {
		return store.Revision(binary.BigEndian.Uint64(v))
	}
	return 0
}

// check holds the conditions against what is there.
func (m *making) check(entries *bbolt.Bucket) error {
	for _, cond := range m.change.If {
		r, ok, err := rowOf(entries, cond.Key)
		if err != nil {
			return err
		}
		have := store.Revision(0)
		if ok && !r.expired(m.now) {
			have = r.revision
		}
		if have != cond.Revision {
			return &store.Conflict{Key: cond.Key, Have: have}
		}
	}
	return nil
}

// rowOf returns the row of a key, with ok false when there is none.
func rowOf(entries *bbolt.Bucket, key string) (r row, ok bool, err error) {
	v := entries.Get([]byte(key))
	if v == nil {
		return r, false, nil
	}
	r, err = decodeRow([]byte(key), v, true)
	return r, true, err
}

// put writes one entry, or stages its file.
func (m *making) put(tx *bbolt.Tx, entries *bbolt.Bucket, e store.Entry) error {
	old, was, err := rowOf(entries, e.Key)
	if err != nil {
		return err
	}
	if was {
		if err := dropExpiry(tx, old, e.Key); err != nil {
			return err
		}
	} else {
		m.added++
	}
	r := row{revision: m.batch.Revision, modified: m.now, size: len(e.Value)}
	switch {
	case m.exact:
		r.revision, r.modified, r.expires = e.Revision, e.Modified, e.Expires
	case e.TTL != 0:
		r.expires = m.now.Add(e.TTL)
	}
	name, err := fileOf(e.Key)
	switch {
	case err != nil:
		return err
	case name != "":
		r.flags |= rowInFile
		st, f, err := m.s.stage(e.Key, name, m.s.keys.sealFile(e.Key, e.Value, store.Sealed(e.Key)), m.nextStage())
		if err != nil {
			return err
		}
		m.open = append(m.open, f)
		r.file = st.ref
		m.steps = append(m.steps, st)
		if err := notePending(tx, st); err != nil {
			return err
		}
	case store.Sealed(e.Key):
		r.flags |= rowSealed
		r.value = m.s.keys.seal(e.Key, e.Value)
	default:
		r.value = e.Value
	}
	if err := entries.Put([]byte(e.Key), r.encode(e.Key)); err != nil {
		return err
	}
	if !r.expires.IsZero() {
		if err := tx.Bucket([]byte(bucketExpires)).Put(expiryKey(r.expires, e.Key), nil); err != nil {
			return err
		}
	}
	m.batch.Put = append(m.batch.Put, r.entry(e.Key, bytes.Clone(e.Value)))
	return nil
}

// nextStage returns a name for a staged file that no earlier one has which may be
// waiting still.
func (m *making) nextStage() int {
	m.staged++
	m.s.stages++
	return m.s.stages
}

// remove deletes one entry; its file goes when state.db has decided.
func (m *making) remove(tx *bbolt.Tx, entries *bbolt.Bucket, key string) error {
	old, was, err := rowOf(entries, key)
	if err != nil || !was {
		return err
	}
	m.added--
	if err := dropExpiry(tx, old, key); err != nil {
		return err
	}
	if old.flags&rowInFile != 0 {
		name, err := fileOf(key)
		if err != nil {
			return err
		}
		st := step{key: key, name: name, ref: old.file}
		m.steps = append(m.steps, st)
		if err := notePending(tx, st); err != nil {
			return err
		}
	}
	m.batch.Delete = append(m.batch.Delete, key)
	return entries.Delete([]byte(key))
}

func expiryKey(at time.Time, key string) []byte { return append(number(nanos(at)), key...) }

func dropExpiry(tx *bbolt.Tx, r row, key string) error {
	if r.expires.IsZero() {
		return nil
	}
	return tx.Bucket([]byte(bucketExpires)).Delete(expiryKey(r.expires, key))
}

// bound keeps the number of entries within bounds: sessions make room for each other.
func (m *making) bound(tx *bbolt.Tx, entries *bbolt.Bucket) error {
	for _, e := range m.change.Put {
		if strings.HasPrefix(e.Key, store.PrefixSession) && !m.exact {
			if err := m.boundSessions(tx, entries); err != nil {
				return err
			}
			break
		}
	}
	if m.added > 0 && !m.byEngine && m.s.entries+m.added > maxEntries {
		return fmt.Errorf("the store holds %d entries already: %w", m.s.entries, store.ErrTooLarge)
	}
	return nil
}

// boundSessions removes the sessions that were written longest ago while there are
// too many.
func (m *making) boundSessions(tx *bbolt.Tx, entries *bbolt.Bucket) error {
	for {
		count, oldest, at := 0, "", time.Time{}
		cursor := entries.Cursor()
		for k, v := cursor.Seek([]byte(store.PrefixSession)); bytes.HasPrefix(k, []byte(store.PrefixSession)); k, v = cursor.Next() {
			r, err := decodeRow(k, v, false)
			if err != nil {
				return err
			}
			if count++; oldest == "" || r.modified.Before(at) {
				oldest, at = string(k), r.modified
			}
		}
		if count <= store.MaxSessions {
			return nil
		}
		if err := m.remove(tx, entries, oldest); err != nil {
			return err
		}
	}
}

// notePending notes what has to be done with a file when the commit has been made: a
// crash may happen in between.
func notePending(tx *bbolt.Tx, st step) error {
	value := append(st.ref.digest[:], st.staged...)
	return tx.Bucket([]byte(bucketPending)).Put([]byte(st.key), value)
}

// removeStaged forgets what was to be done and is.
func (m *making) removeStaged(tx *bbolt.Tx) error {
	pending := tx.Bucket([]byte(bucketPending))
	left := map[string]bool{}
	for _, st := range m.s.unplaced {
		left[st.key] = true
	}
	for _, st := range m.steps {
		left[st.key] = true // noted just now
	}
	for _, key := range m.s.settled {
		if !left[key] {
			if err := pending.Delete([]byte(key)); err != nil {
				return err
			}
		}
	}
	tx.OnCommit(func() { m.s.settled = nil })
	return nil
}
