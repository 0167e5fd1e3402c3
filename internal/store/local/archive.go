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

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// Archive is a backup that was unpacked to be read. Close removes it.
type Archive struct {
	*Store
	release func()
}

// restoringName is the folder in a state directory that an archive is unpacked in.
const restoringName = "restoring"

// The bounds of an archive that is read.
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

// ErrArchiveOpen says that another archive is being read.
var ErrArchiveOpen = errors.New("another archive is being restored")

// OpenArchive reads an archive, which may come slowly, unpacks it in the state
// directory, checks it against its manifest, and opens what it holds. Nothing else is
// touched. The error wraps store.ErrUnavailable when the disk is the reason or too many
// archives are on their way; otherwise it is about the archive. What a crash leaves of
// it is removed by the next Open.
func (s *Store) OpenArchive(ctx context.Context, r io.Reader, passphrase string) (*Archive, error) {
	received, err := s.receive(ctx, r)
	if err != nil {
		return nil, s.notRestored(err)
	}
	defer func() {
		if err := received.Close(); err != nil {
			s.log.Warn("spooled archive is not removed", "error", err)
		}
	}()
	if !s.archive.TryLock() {
		return nil, ErrArchiveOpen
	}
	return s.openArchive(ctx, received, passphrase)
}

// receive reads a whole archive from a client.
func (s *Store) receive(ctx context.Context, r io.Reader) (*spool, error) {
	received, err := s.newSpool(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(received, r); err == nil {
		err = received.Rewind()
	}
	if err != nil {
		return nil, errors.Join(err, received.Close())
	}
	return received, nil
}

// openArchive unpacks and opens an archive. It gives s.archive free when it fails, else
// Close does.
func (s *Store) openArchive(ctx context.Context, r io.Reader, passphrase string) (*Archive, error) {
	into := filepath.Join(s.dir, restoringName)
	a := &Archive{release: func() {
		if err := os.RemoveAll(into); err != nil {
			s.log.Warn("unpacked archive is not removed", "path", into, "error", err)
		}
		s.archive.Unlock()
	}}
	err := os.RemoveAll(into)
	if err == nil {
		err = unpack(ctx, r, passphrase, into)
	}
	if err == nil {
		err = validate(into, s.outside)
	}
	if err == nil {
		a.Store, err = Open(Options{Dir: into, Log: s.log, Node: s.node, Key: s.outside, Clock: s.clock})
	}
	if err == nil {
		return a, nil
	}
	a.release()
	return nil, s.notRestored(err)
}

// notRestored returns the error of OpenArchive.
func (s *Store) notRestored(err error) error {
	if onDisk := (*fs.PathError)(nil); errors.As(err, &onDisk) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, s.explain(err))
	}
	return fmt.Errorf("restore: %w; nothing was changed", err)
}

// Close removes what was unpacked.
func (a *Archive) Close() error {
	defer a.release()
	return a.Store.Close()
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
		if _, twice := have[h.Name]; twice {
			return fmt.Errorf("the archive holds %q twice", h.Name)
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
