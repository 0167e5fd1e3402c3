package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errNotSuspended is the error of what needs a suspended store.
var errNotSuspended = errors.New("the state directory is not suspended")

// Suspend closes state.db, so that another process can open it, and returns a duplicate of
// the lock of the directory for that. The caller closes it. Reads and writes wait until
// Resume or End is called.
func (s *Store) Suspend() (lock *os.File, err error) {
	s.writer.Lock()
	s.mu.Lock()
	defer func() {
		if err != nil {
			s.mu.Unlock()
			s.writer.Unlock()
		}
	}()
	switch {
	case s.mu.closed:
		return nil, errors.New("the state directory is being closed")
	case s.mu.trouble != nil:
		return nil, fmt.Errorf("the state directory cannot be handed over: %w", s.mu.trouble)
	case s.lock == nil:
		return nil, errors.New("the state directory has no lock that can be handed over")
	}
	if lock, err = duplicate(s.lock); err != nil {
		return nil, fmt.Errorf("duplicate the lock of the state directory: %w", err)
	}
	if err := guard(s.mu.db.Close); err != nil {
		lock.Close()
		return nil, errors.Join(fmt.Errorf("close state.db: %w", err), s.reopenLocked())
	}
	s.suspended = true
	return lock, nil
}

// ReleaseLock gives the lock of a suspended directory to the process that has its duplicate.
func (s *Store) ReleaseLock() {
	s.lock.Close()
	s.lock = nil
}

// Resume opens state.db again, after it has locked the directory again if the lock was
// released. The error is *InUse if another process has it by now; the store stays suspended
// then.
func (s *Store) Resume() error {
	if !s.suspended {
		return errNotSuspended
	}
	if s.lock == nil {
		if err := s.takeLock(nil); err != nil {
			return err
		}
	}
	if err := s.reopenLocked(); err != nil {
		s.log.Error("state cannot be written: changes are refused, traffic is served", "error", err)
		if s.mu.trouble = err; s.openMemoryLocked() != nil {
			return err
		}
	}
	s.suspended = false
	s.mu.Unlock()
	s.writer.Unlock()
	return nil
}

// openHeldLocked opens state.db without writing anything.
func (s *Store) openHeldLocked() error {
	db, raw, err := openDB(filepath.Join(s.dir, dbName))
	if err != nil {
		return s.explain(err)
	}
	s.mu.db, s.mu.raw = db, raw
	if err := s.checkSeal(); err != nil {
		return err
	}
	return s.countLocked()
}

// End closes a suspended store: waiting calls return store.ErrClosed.
func (s *Store) End() {
	if !s.suspended {
		return
	}
	s.suspended, s.mu.closed = false, true
	s.feed.Close()
	s.mu.Unlock()
	s.writer.Unlock()
	s.stop()
}

// EnableWrites allows writing to a store that was opened with Hold: it first does what Open has
// left out because it writes.
func (s *Store) EnableWrites() {
	if !s.held {
		return
	}
	s.held = false
	trouble := s.prepareFiles()
	s.mu.Lock()
	if trouble == nil {
		trouble = s.settleLocked()
	}
	if trouble != nil {
		s.log.Error("state cannot be written: changes are refused, traffic is served", "error", trouble)
		s.mu.trouble = trouble
	}
	s.mu.Unlock()
	s.writer.Unlock()
}

// RefuseWrites ends the wait of a store that was opened with Hold and that EnableWrites was not
// called for: what waits to write, and all that follows, gets store.ErrClosed. Close still
// releases the directory. Of other stores it changes nothing.
func (s *Store) RefuseWrites() {
	if !s.held {
		return
	}
	s.held = false
	s.mu.Lock()
	s.mu.closed, s.refused = true, true
	s.mu.Unlock()
	s.writer.Unlock()
}

// prepareFiles removes what a crash has left, and brings the directory to this version.
func (s *Store) prepareFiles() error {
	for _, left := range []string{restoringName, spoolName} {
		if err := os.RemoveAll(filepath.Join(s.dir, left)); err != nil {
			return err
		}
	}
	return s.prepare()
}
