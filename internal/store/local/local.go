// Package local stores state on this machine, in the state directory. What traffic needs is
// in plain files that an operator can read, copy and repair: revisions and their documents,
// certificates with their keys, the networks of CDNs, the keys of sticky cookies. The rest,
// and an index of the files, is in one bbolt file, state.db.
//
// A commit is atomic: files are staged and synced first, then the commit of state.db
// decides, then the files are renamed. If a crash interrupts the last step, it is completed
// at the next start.
//
// State never prevents traffic from being served. A damaged state.db is set aside and
// replaced by the newest copy; if the directory is read-only, reads continue in memory and
// commits are rejected with the reason. Only a directory that another process uses, or that
// a newer headgate has written, is rejected.
//
// One process at a time uses a state directory, and no other program writes to it.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
	"headgate/internal/store"
)

// Options says where state is kept and how.
type Options struct {
	// Dir is the state directory. It is made if it is absent.
	Dir string
	// Log records damage and repairs. It may be nil.
	Log *slog.Logger
	// Node is the name of this machine, told to who wants a lease that is held. The
	// default is the host's name.
	Node string
	// Key is the key that secrets are sealed with, 64 hexadecimal digits, as
	// HEADGATE_STATE_KEY gives it. The default is the file state.key, which is made
	// if it is absent. With a key from outside, the files of certificates are sealed
	// too.
	Key string
	// Lock is the lock of the directory that another process has handed over; nil locks
	// the directory. Open closes it if it fails.
	Lock *os.File
	// Hold opens the directory without writing anything: commits wait until Begin is
	// called.
	Hold bool
	// Clock is the engine's clock, by default the machine's.
	Clock func() time.Time
	// Point is called with a name at every step of a write, for tests that end the
	// process there. It is nil in service.
	Point func(name string)
}

// The files of the state directory that hold no entries.
const (
	lockName    = "lock"
	versionName = "version"
	keyName     = "state.key"
	dbName      = "state.db"
	stagedName  = "staged"
)

// Version is the version of the state directory that this program writes. It reads
// all before it, and refuses later ones. Directories without a version have 1.
const Version = 2

// InUse is the error of Open when another process has the directory.
type InUse struct{ Dir string }

// Error says what to do.
func (e *InUse) Error() string {
	return fmt.Sprintf("state directory %s is in use by another headgate; give each its own with --state", e.Dir)
}

// Newer is the error of Open when a later headgate has written the directory.
type Newer struct {
	Dir  string
	Have string
}

// Error says what to do.
func (e *Newer) Error() string {
	return fmt.Sprintf("state directory %s has version %s, this headgate knows versions up to %d: run the newer headgate again, or give another directory with --state", e.Dir, e.Have, Version)
}

// Store is the state directory as a store.Store.
type Store struct {
	// constant
	dir   string
	node  string
	log   *slog.Logger
	clock func() time.Time
	point func(string)
	keys  *keyring
	lock  *os.File // nil where no file can be made; changed by who has suspended the store
	// outside is the key of the secrets, "" if it is in the directory.
	outside string
	stop    context.CancelFunc
	done    chan struct{}

	// mirrors is whether the store is the copy of another: see Mirror.
	mirrors atomic.Bool
	// ahead is how far the clock of that is ahead of this machine's: see SetTime.
	ahead atomic.Int64

	// archive is held while an archive is unpacked and open. No client is waited for
	// meanwhile: see spool.
	archive sync.Mutex
	// spools has a place for each archive on its way to or from a client.
	spools chan struct{}
	// writer is held for the whole of a commit.
	writer sync.Mutex
	// mu guards the open file, and makes entries in files change together with the index:
	// readers of such an entry hold it.
	mu struct {
		sync.RWMutex
		db      *bbolt.DB
		raw     *os.File // what db has open
		trouble error    // why nothing can be written, nil if it can
		closed  bool
	}
	feed   store.Feed
	leases leases

	// guarded by writer
	tried     time.Time // when writing was tried again last
	entries   int       // how many there are
	stages    int       // of staged files, for their names
	held      bool      // Begin was not called yet, and writer is held
	refused   bool      // see RefuseWrites; until Close
	suspended bool      // by Suspend, and writer and mu are held
	settled   []string  // keys whose files are in their places, and still noted as pending
	movedTo   string    // where the state has moved to, "" if it is here
	half      bool      // an import was begun and is not finished

	// unplaced are files that are not in their places yet. It is changed with both
	// writer and mu held.
	unplaced []step
}

var _ store.Store = (*Store)(nil)

// Open opens a state directory. It returns *InUse or *Newer, or an error when there
// is no directory and none can be made; everything else that is wrong with it is
// told by Trouble, and what can be read is.
func Open(o Options) (*Store, error) {
	s := &Store{dir: o.Dir, node: o.Node, log: o.Log, clock: o.Clock, point: o.Point, outside: o.Key, done: make(chan struct{}), spools: make(chan struct{}, maxSpools)}
	s.defaults()
	mkdirErr := os.MkdirAll(s.dir, 0o700)
	if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
		if mkdirErr == nil {
			mkdirErr = errors.New("it is not a folder")
		}
		return nil, fmt.Errorf("make state directory %s: %w; give another with --state", s.dir, mkdirErr)
	} else if mode := info.Mode().Perm(); mode&0o002 != 0 && runtime.GOOS != "windows" {
		s.log.Warn("all users of this machine can write to the state directory, and so replace keys or add users; run chmod o-w on it",
			"path", s.dir, "mode", fmt.Sprintf("%04o", mode))
	}
	trouble := s.takeLock(o.Lock)
	var inUse *InUse
	if errors.As(trouble, &inUse) {
		return nil, trouble
	}
	if err := s.checkVersion(); err != nil {
		s.lock.Close()
		return nil, err
	}
	if s.held = o.Hold && trouble == nil; s.held {
		s.writer.Lock() // until Begin
	} else if trouble == nil {
		trouble = s.prepareFiles()
	}
	var err error
	if s.keys, err = openKeys(s.dir, o.Key, trouble == nil); err != nil {
		s.lock.Close()
		return nil, err
	}
	if trouble == nil && s.keys.unkept != nil {
		trouble = s.explain(s.keys.unkept)
	}
	if err := s.start(trouble); err != nil {
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) defaults() {
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.point == nil {
		s.point = func(string) {}
	}
	if s.node == "" {
		s.node, _ = os.Hostname() // an empty name tells nothing, and harms nothing
	}
	s.feed.Init()
	s.leases.held = map[string]*held{}
}

// takeLock locks the directory for this process, unless it gets the lock. The error is
// *InUse, or says why the directory cannot be written to.
func (s *Store) takeLock(handed *os.File) error {
	if handed != nil {
		s.lock = handed
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return s.explain(err)
	}
	switch err := tryLock(lock); {
	case errors.Is(err, errLocked):
		lock.Close()
		return &InUse{Dir: s.dir}
	case err != nil:
		lock.Close()
		return fmt.Errorf("lock state directory %s: %w", s.dir, err)
	}
	s.lock = lock
	return nil
}

// checkVersion refuses a directory that a later headgate has written.
func (s *Store) checkVersion() error {
	data, err := file.Read(filepath.Join(s.dir, versionName), 64, "a version has few")
	if err != nil {
		return nil // absent, or told later by what cannot be read
	}
	text := strings.TrimSpace(string(data))
	if n, err := strconv.Atoi(text); err != nil || n > Version {
		return &Newer{Dir: s.dir, Have: text}
	}
	return nil
}

// prepare makes the folders, and moves what an earlier version has kept elsewhere, after
// a copy of it was made.
func (s *Store) prepare() error {
	if err := s.keepPrevious(Version); err != nil {
		return s.explain(err)
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(s.dir, f.dir), 0o700); err != nil {
			return s.explain(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(s.dir, stagedName), 0o700); err != nil {
		return s.explain(err)
	}
	s.takeOver()
	if have, held := versionOf(s.dir); !held || have < Version || !exists(filepath.Join(s.dir, versionName)) {
		if err := file.Replace(filepath.Join(s.dir, versionName), fmt.Appendln(nil, Version)); err != nil {
			return s.explain(err)
		}
	}
	return nil
}

// start opens the database, looks at the files, and begins to look after both.
func (s *Store) start(trouble error) error {
	if !s.held {
		s.writer.Lock()
		defer s.writer.Unlock()
	}
	s.mu.Lock()
	open := func() error { return s.openLocked(trouble) }
	if s.held {
		open = s.openHeldLocked
	}
	err := open()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.lookAfter(ctx)
	return nil
}

// Dir returns the state directory.
func (s *Store) Dir() string { return s.dir }

// Trouble returns why nothing can be written at present, nil if everything is well.
func (s *Store) Trouble() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.trouble
}

// Close ends what runs and gives the directory free.
func (s *Store) Close() error {
	s.stop()
	s.RefuseWrites()
	<-s.done
	s.writer.Lock()
	defer s.writer.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed && !s.refused {
		return nil
	}
	s.mu.closed, s.refused = true, false
	s.feed.Close()
	err := guard(s.mu.db.Close)
	if s.lock != nil {
		if cerr := s.lock.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// explain says what is wrong with writing to the directory and what to do.
func (s *Store) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("state directory %s cannot be written to: %w; %s", s.dir, err, ownerHelp(s.dir))
	case isFull(err):
		return fmt.Errorf("state directory %s is on a full disk: %w; free some space", s.dir, err)
	case isReadOnly(err):
		return fmt.Errorf("state directory %s is read-only: %w; mount it for writing, or give another with --state", s.dir, err)
	}
	return fmt.Errorf("state directory %s: %w", s.dir, err)
}
