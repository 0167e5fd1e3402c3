package local

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/file"
)

// manifestName is the last file of an archive: it tells all others, so that one that
// is cut off or altered is not restored.
const manifestName = "manifest.json"

// manifest is what an archive holds.
type manifest struct {
	Version int                `json:"version"` // of the state
	Time    time.Time          `json:"time"`
	Node    string             `json:"node"`
	Files   map[string]content `json:"files"` // by their names in the state directory
}

type content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// The bounds of an archive that is restored.
const (
	maxArchiveFiles = 2 * maxEntries
	maxArchiveBytes = 8 << 30
	maxManifestLine = 1 << 10 // of the manifest for one file, and for itself
	maxArchiveEnd   = 1 << 20 // after the last file, where tar writes zeros
)

// maxFile returns how large a file of an archive may be that has so many others before
// it. What compresses well would take all memory or the whole disk otherwise.
func maxFile(name string, before int) int64 {
	switch name {
	case dbName:
		return maxDB
	case manifestName:
		return int64(before+1) * maxManifestLine
	}
	return maxOnDisk
}

// Backup writes one archive of everything in the state directory, as it is at one
// moment, while it is in use: a tar file compressed with gzip, sealed when there is a
// passphrase. It holds the key that secrets are sealed with unless that comes from
// outside, so an archive without a passphrase is as secret as the directory. Commits
// wait while it is written.
func (s *Store) Backup(ctx context.Context, w io.Writer, passphrase string) error {
	out, err := sealTo(w, passphrase)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	z := gzip.NewWriter(out)
	a := &archive{ctx: ctx, tar: tar.NewWriter(z), manifest: manifest{Version: Version, Time: s.clock().UTC(), Node: s.node, Files: map[string]content{}}}
	err = s.viewOnce(func(tx *bbolt.Tx) error { return a.addState(s.dir, tx) })
	if err == nil {
		err = a.end()
	}
	for _, c := range []io.Closer{a.tar, z, out} {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// archive is one that is being written.
type archive struct {
	ctx      context.Context // of the whole of it
	tar      *tar.Writer
	manifest manifest
}

// addState adds state.db as a transaction sees it, and every file.
func (a *archive) addState(dir string, tx *bbolt.Tx) error {
	sum := sha256.New()
	if err := a.tar.WriteHeader(&tar.Header{Name: dbName, Mode: 0o600, Size: tx.Size(), ModTime: a.manifest.Time}); err != nil {
		return err
	}
	if _, err := tx.WriteTo(io.MultiWriter(a.tar, sum)); err != nil {
		return err
	}
	a.manifest.Files[dbName] = content{tx.Size(), hex.EncodeToString(sum.Sum(nil))}
	names := []string{versionName, keyName}
	for _, name := range singles {
		names = append(names, name)
	}
	for _, f := range folders {
		list, err := os.ReadDir(filepath.Join(dir, f.dir))
		if err != nil {
			return err
		}
		for _, d := range list {
			if _, ok := f.keyOf(d.Name()); ok {
				names = append(names, filepath.Join(f.dir, d.Name()))
			}
		}
	}
	for _, name := range names {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		data, err := file.Read(filepath.Join(dir, name), maxOnDisk, "a file of the state has less")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = a.add(filepath.ToSlash(name), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) add(name string, data []byte) error {
	sum := sha256.Sum256(data)
	a.manifest.Files[name] = content{int64(len(data)), hex.EncodeToString(sum[:])}
	return a.write(name, data)
}

func (a *archive) write(name string, data []byte) error {
	err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: a.manifest.Time})
	if err == nil {
		_, err = a.tar.Write(data)
	}
	return err
}

func (a *archive) end() error {
	data, err := json.MarshalIndent(a.manifest, "", "  ")
	if err != nil {
		return err
	}
	return a.write(manifestName, data)
}

// The folders and marks of a restore in a state directory.
const (
	restoringName = "restoring"
	beforeName    = "before-restore-"
	readyMark     = "restore-is-ready"
	movedMark     = "former-state-is-aside"
)

// Restore makes a state directory what an archive holds. The archive is unpacked
// beside what is there and validated as a whole before anything else is touched; the
// former state is kept in the folder before-restore-TIME. The directory must not be in
// use. A crash leaves the one or the other: what was begun after the validation is
// completed by the next Open.
func Restore(ctx context.Context, o Options, r io.Reader, passphrase string) error {
	s := &Store{dir: o.Dir, log: o.Log, clock: o.Clock, point: o.Point}
	s.defaults()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := s.takeLock(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer s.lock.Close()
	if err := s.checkVersion(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	into := filepath.Join(s.dir, restoringName)
	if err := os.RemoveAll(into); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err := unpack(ctx, r, passphrase, into)
	if err == nil {
		err = validate(into, o.Key)
	}
	if err == nil {
		err = file.Replace(filepath.Join(into, readyMark), []byte(s.clock().UTC().Format(stampLayout)))
	}
	if err == nil {
		err = file.SyncDir(into)
	}
	if err != nil {
		os.RemoveAll(into)
		return fmt.Errorf("restore: %w; nothing was changed", err)
	}
	s.point("restore is ready")
	if err := s.finishRestore(); err != nil {
		return fmt.Errorf("restore: %w; the next start completes it", err)
	}
	return nil
}

// unpack writes the files of an archive to a folder and holds them against its
// manifest.
func unpack(ctx context.Context, r io.Reader, passphrase, into string) error {
	in, err := openSealed(r, passphrase)
	if err != nil {
		return err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return errors.New("it is no backup of headgate, or it is damaged")
	}
	have := map[string]content{}
	total := int64(0)
	for t := tar.NewReader(z); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if err != nil {
			return fmt.Errorf("the archive is cut off or damaged: %v", err)
		}
		if total += h.Size; len(have) >= maxArchiveFiles || total > maxArchiveBytes {
			return fmt.Errorf("the archive is larger than %d files or %d bytes", maxArchiveFiles, int64(maxArchiveBytes))
		}
		if h.Size > maxFile(h.Name, len(have)) {
			return fmt.Errorf("the archive's file %.100q has %d bytes, more than a file of the state can have", h.Name, h.Size)
		}
		if h.Name == manifestName {
			if err := checkManifest(t, have); err != nil {
				return err
			}
			// What follows is verified by its checksums, and must be nothing.
			if _, err := t.Next(); err != io.EOF {
				return errors.New("the archive goes on after its manifest")
			}
			n, err := io.Copy(io.Discard, io.LimitReader(z, maxArchiveEnd+1))
			if err != nil {
				return fmt.Errorf("the archive is cut off or damaged: %v", err)
			}
			if n > maxArchiveEnd {
				return errors.New("the archive goes on after its manifest")
			}
			return nil
		}
		if !isStateFile(h.Name) || h.Typeflag != tar.TypeReg {
			return fmt.Errorf("the archive holds %q, which is no file of the state", h.Name)
		}
		have[h.Name], err = unpackFile(filepath.Join(into, filepath.FromSlash(h.Name)), t)
		if onDisk := (*fs.PathError)(nil); err != nil && !errors.As(err, &onDisk) {
			return fmt.Errorf("the archive is cut off or damaged: %w", err)
		}
		if err != nil {
			return err
		}
	}
}

// isStateFile reports whether a name in an archive is one that Backup writes.
func isStateFile(name string) bool {
	switch name {
	case dbName, versionName, keyName:
		return true
	}
	for _, single := range singles {
		if name == single {
			return true
		}
	}
	dir, base, ok := strings.Cut(name, "/")
	for _, f := range folders {
		if _, is := f.keyOf(base); ok && dir == f.dir && is && !strings.Contains(base, "/") {
			return true
		}
	}
	return false
}

func unpackFile(path string, r io.Reader) (c content, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return c, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return c, err
	}
	sum := sha256.New()
	c.Size, err = io.Copy(io.MultiWriter(f, sum), r)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, err
}

func checkManifest(r io.Reader, have map[string]content) error {
	var m manifest
	if err := json.NewDecoder(r).Decode(&m); err != nil {
		return fmt.Errorf("the archive is cut off or damaged: its manifest cannot be read: %w", err)
	}
	if m.Version > Version {
		return fmt.Errorf("the archive has version %d, this headgate knows versions up to %d: restore it with a newer one", m.Version, Version)
	}
	for name, want := range m.Files {
		if have[name] != want {
			return fmt.Errorf("the archive's file %s is missing or damaged", name)
		}
	}
	if _, ok := have[dbName]; !ok {
		return fmt.Errorf("the archive has no %s: it is no whole backup", dbName)
	}
	if len(have) != len(m.Files) {
		return errors.New("the archive holds files that its manifest does not tell of")
	}
	return nil
}

// validate reads what was unpacked as a whole: the database, and a secret with the key.
func validate(dir, outside string) error {
	if err := verify(filepath.Join(dir, dbName)); err != nil {
		return err
	}
	keys, err := openKeys(dir, outside, false)
	if err == nil {
		err = keys.fault
	}
	if err != nil {
		return err
	}
	db, _, err := openDB(filepath.Join(dir, dbName))
	if err != nil {
		return err
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			sealed := tx.Bucket([]byte(bucketMeta)).Get([]byte(metaSeal))
			if sealed == nil {
				return nil
			}
			_, err := keys.open(sealName, sealed)
			return err
		})
	})
	if cerr := guard(db.Close); err == nil {
		err = cerr
	}
	return err
}

// finishRestore puts what was unpacked and validated in the place of what is there. It
// is done again after a crash, from where that came.
func (s *Store) finishRestore() error {
	from := filepath.Join(s.dir, restoringName)
	stamp, err := file.Read(filepath.Join(from, readyMark), 64, "a mark has less")
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(from) // it was not validated
	}
	if err != nil {
		return err
	}
	aside := filepath.Join(s.dir, beforeName+string(stamp))
	if _, err := os.Stat(filepath.Join(from, movedMark)); errors.Is(err, fs.ErrNotExist) {
		if err := moveAll(s.dir, aside, s.point); err != nil {
			return err
		}
		if err := file.Replace(filepath.Join(from, movedMark), nil); err != nil {
			return err
		}
		if err := file.SyncDir(from); err != nil {
			return err
		}
	}
	if err := moveAll(from, s.dir, s.point); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(from, readyMark)); err != nil {
		return err
	}
	s.log.Warn("state was restored from a backup", "former_state", aside)
	return os.RemoveAll(from)
}

// moveAll moves the files and folders of the state from one folder to another.
func moveAll(from, to string, point func(string)) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, d := range list {
		name := d.Name()
		if name == lockName || name == restoringName || name == readyMark || name == movedMark || strings.HasPrefix(name, beforeName) {
			continue
		}
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
		point("moved")
	}
	return errors.Join(file.SyncDir(to), file.SyncDir(from))
}
