package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"headgate/internal/file"
)

// The buckets of state.db.
const (
	bucketMeta    = "meta"
	bucketEntries = "entries" // key: row
	bucketExpires = "expires" // time, key: nothing
	bucketPending = "pending" // key: what is still to be done with its file
	bucketStreams = "streams" // of buckets, by stream
	bucketLog     = "log"     // revision: the commit; absent in a database of an earlier version
	bucketIDs     = "ids"     // identifier of a commit: its revision
)

// The keys of the bucket meta.
const (
	metaVersion  = "version"
	metaRevision = "revision"
	metaToken    = "token"
	metaSeal     = "seal"
	metaID       = "id"     // of the newest commit
	metaMoved    = "moved"  // where the state has moved to
	metaHalf     = "import" // an import was begun and is not finished
)

// The bounds of the database.
const (
	dbLockWait = 2 * time.Second
	maxDB      = 2<<30 - 1 // bytes; fits an int of 32 bits, as of armv7
	// maxMemory is how large a state.db is read into memory where it cannot be
	// written to.
	maxMemory = 256 << 20
	// leap is by how much the revision grows when an older copy is put in place, so
	// that no revision is given twice.
	leap = 1 << 20
)

// damaged is the error of a database in which something is not as it was written.
type damaged struct{ what string }

// Error tells what is damaged.
func (d *damaged) Error() string { return "damaged: " + d.what }

// guard turns panics into *damaged: the database panics where a page is not what it
// has to be, and so does memory that a cut-off file does not back.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &damaged{what: fmt.Sprint(v)}
		}
	}()
	return do()
}

// errGone is the damage of a database that was there and is not.
var errGone = errors.New("state.db is gone")

// isDamage reports whether an error is one of damage, and not of a disk or of us.
func isDamage(err error) bool {
	var d *damaged
	return errors.As(err, &d) || errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch)
}

// openLocked opens the database: the file, else the newest copy of it, else an empty
// one, and in memory where nothing can be written. The error is *Newer, or one that
// leaves nothing to work with.
func (s *Store) openLocked(trouble error) error {
	if trouble == nil {
		trouble = s.openFileLocked()
		var newer *Newer
		if errors.As(trouble, &newer) {
			return trouble
		}
	}
	if trouble != nil {
		s.log.Error("state cannot be written: changes are refused, traffic is served", "error", trouble)
		if err := s.openMemoryLocked(); err != nil {
			return err
		}
	}
	s.mu.trouble = trouble
	return s.settleLocked()
}

// openFileLocked opens state.db for writing. A damaged one is set aside.
func (s *Store) openFileLocked() error {
	name := filepath.Join(s.dir, dbName)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && len(s.copies()) > 0 {
		return s.openCopyLocked(errGone, "none")
	}
	s.tellMetaPages(name)
	_, absent := os.Stat(name)
	db, raw, err := openDB(name)
	if err != nil && errors.Is(absent, fs.ErrNotExist) {
		os.Remove(name) // half of it was written, and the next start would find it damaged
	}
	if err == nil {
		s.mu.db, s.mu.raw = db, raw
		return nil
	}
	if !isDamage(err) {
		return s.explain(err)
	}
	return s.restoreLocked(err)
}

// openDB opens a database and checks its pages and entries.
func openDB(name string) (db *bbolt.DB, raw *os.File, err error) {
	options := &bbolt.Options{Timeout: dbLockWait, FreelistType: bbolt.FreelistMapType, MaxSize: maxDB, OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		raw = f
		return f, err
	}}
	return openWith(name, options, &raw)
}

func openWith(name string, options *bbolt.Options, raw **os.File) (db *bbolt.DB, _ *os.File, err error) {
	err = guard(func() (err error) {
		db, err = bbolt.Open(name, 0o600, options)
		return err
	})
	if err == nil {
		err = checkOpened(*raw, db.Info().PageSize)
	}
	if err == nil {
		err = guard(func() error { return ready(db) })
	}
	if err != nil && *raw != nil {
		(*raw).Close() // the database may hold its lock for ever: it is left to itself
	}
	return db, *raw, err
}

// rootBuckets are those that every database has.
var rootBuckets = [...]string{bucketMeta, bucketEntries, bucketExpires, bucketPending, bucketStreams}

// ready makes what a new database lacks, and reads the entries of another. The error
// is *Newer when a later headgate has written it.
func ready(db *bbolt.DB) error {
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		first, _ := tx.Cursor().First()
		if fresh = first == nil; fresh {
			return nil
		}
		for _, name := range rootBuckets {
			if tx.Bucket([]byte(name)) == nil {
				return &damaged{fmt.Sprintf("the bucket %s is missing", name)}
			}
		}
		if v := tx.Bucket([]byte(bucketMeta)).Get([]byte(metaVersion)); len(v) == 8 && binary.BigEndian.Uint64(v) > Version {
			return &Newer{Dir: filepath.Dir(db.Path()), Have: fmt.Sprint(binary.BigEndian.Uint64(v))}
		}
		return checkEntries(tx)
	})
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range rootBuckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaVersion), number(Version))
	})
}

// checkEntries reads every entry.
func checkEntries(tx *bbolt.Tx) error {
	return tx.Bucket([]byte(bucketEntries)).ForEach(func(k, v []byte) error {
		_, err := decodeRow(k, v, true)
		return err
	})
}

// checkAll reads everything.
func checkAll(tx *bbolt.Tx) error {
	if err := checkEntries(tx); err != nil {
		return err
	}
	for _, name := range []string{bucketMeta, bucketExpires, bucketPending} {
		if err := tx.Bucket([]byte(name)).ForEach(func(_, _ []byte) error { return nil }); err != nil {
			return err
		}
	}
	streams := tx.Bucket([]byte(bucketStreams))
	return streams.ForEachBucket(func(stream []byte) error {
		return streams.Bucket(stream).ForEach(func(k, v []byte) error {
			_, err := decodeRecord(string(stream), k, v)
			return err
		})
	})
}

// openMemoryLocked opens what can be read of state.db in memory, else an empty one.
func (s *Store) openMemoryLocked() error {
	data, err := file.Read(filepath.Join(s.dir, dbName), maxMemory, "which is too large to be held in memory")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("state cannot be read: users and sessions are missing", "error", err)
	}
	db, raw, err := memoryDB(data)
	if err != nil && len(data) > 0 {
		s.log.Error("state is damaged: users and sessions are missing", "error", err)
		db, raw, err = memoryDB(nil)
	}
	if err != nil {
		return fmt.Errorf("hold state in memory: %w", err)
	}
	s.mu.db, s.mu.raw = db, raw
	return nil
}

func memoryDB(data []byte) (db *bbolt.DB, raw *os.File, err error) {
	f, err := file.Memory()
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, nil, err
	}
	raw = f
	options := &bbolt.Options{Timeout: dbLockWait, FreelistType: bbolt.FreelistMapType, NoSync: true, OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil }}
	return openWith("state in memory", options, &raw)
}

// restoreLocked sets a damaged state.db aside and puts the newest copy that is whole
// in its place, or an empty one when there is none.
func (s *Store) restoreLocked(damage error) error {
	name := filepath.Join(s.dir, dbName)
	aside := filepath.Join(s.dir, dbName+".broken-"+s.clock().UTC().Format(stampLayout))
	if err := os.Rename(name, aside); err != nil {
		return s.explain(err)
	}
	s.pruneAside()
	return s.openCopyLocked(damage, aside)
}

// openCopyLocked opens the newest copy that is whole in the place of state.db, which
// is gone.
func (s *Store) openCopyLocked(damage error, aside string) error {
	name, from := filepath.Join(s.dir, dbName), "none"
	for _, copied := range s.copies() {
		if err := s.putCopy(copied, name); err != nil {
			s.log.Error("copy of the state cannot be used", "file", copied, "error", err)
			continue
		}
		from = copied
		break
	}
	db, raw, err := openDB(name)
	if err != nil {
		return s.explain(err)
	}
	s.mu.db, s.mu.raw = db, raw
	what := "state.db was damaged: the newest copy is in its place; users, sessions and records since then are missing"
	if from == "none" {
		what = "state.db was damaged and there is no copy: an empty one is in its place; users, sessions and records are missing"
	}
	s.log.Error(what, "error", damage, "set_aside", aside, "copy", from)
	return guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error { return s.tellRestored(tx, damage, aside, from) })
	})
}

// putCopy puts a copy in place, after it was read as a whole.
func (s *Store) putCopy(copied, name string) error {
	in, err := os.Open(copied)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(name+".restoring", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // gone already when all went well
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = verify(out.Name())
	}
	if err == nil {
		err = os.Rename(out.Name(), name)
	}
	return err
}

// verify reads a database as a whole, which others may have made.
func verify(name string) error {
	if err := checkPages(name); err != nil {
		return err
	}
	db, _, err := openDB(name)
	if err != nil {
		return err
	}
	err = guard(func() error { return db.View(checkAll) })
	if cerr := guard(db.Close); err == nil {
		err = cerr
	}
	return err
}

// tellMetaPages tells the log when one of the two pages that say where everything is
// cannot be used. The other one stands in for it, and the next commit mends it.
func (s *Store) tellMetaPages(name string) {
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	size := int64(os.Getpagesize())
	var damaged []int64
	for i := range int64(2) {
		page := make([]byte, 16+64)
		if _, err := f.ReadAt(page, i*size); err != nil {
			return // too short for a database, which opening it says
		}
		if !validMeta(page[16:]) {
			damaged = append(damaged, i)
		}
	}
	if len(damaged) == 1 { // with two it does not open, which is told then
		s.log.Warn("a meta page of state.db is damaged; the other one is used", "file", name, "page", damaged[0])
	}
}

// validMeta reports whether a meta page is whole, by its own checksum.
func validMeta(meta []byte) bool {
	h := fnv.New64a()
	h.Write(meta[:56])
	return binary.NativeEndian.Uint64(meta[56:]) == h.Sum64()
}

// pruneAside keeps the newest three databases that were set aside.
func (s *Store) pruneAside() {
	names, err := filepath.Glob(filepath.Join(s.dir, dbName+".broken-*"))
	if err != nil {
		return
	}
	slices.Sort(names)
	for len(names) > keptCopies {
		os.Remove(names[0])
		names = names[1:]
	}
}
