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

// Backup writes one archive of everything in the state directory, as it is at one
// moment, while it is in use: a tar file compressed with gzip, sealed when there is a
// passphrase. It holds the key that secrets are sealed with unless that comes from
// outside, so an archive without a passphrase is as secret as the directory. Commits
// wait while it is copied, and not while it is written to w, which may be slow. The
// error wraps store.ErrUnavailable when too many archives are on their way.
func (s *Store) Backup(ctx context.Context, w io.Writer, passphrase string) error {
	copied, err := s.newSpool(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err := copied.Close(); err != nil {
			s.log.Warn("spooled archive is not removed", "error", err)
		}
	}()
	if err := s.copyArchive(ctx, copied); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := sendArchive(ctx, w, copied, passphrase); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// copyArchive writes the state as a tar file. It holds the lock of readers meanwhile,
// so to must wait for no client.
func (s *Store) copyArchive(ctx context.Context, to *spool) error {
	a := &archive{ctx: ctx, tar: tar.NewWriter(to), manifest: manifest{Version: Version, Time: s.clock().UTC(), Node: s.node, Files: map[string]content{}}}
	err := s.viewOnce(func(tx *bbolt.Tx) error { return a.addState(s.dir, tx) })
	if err == nil {
		err = a.end()
	}
	if err == nil {
		err = a.tar.Close()
	}
	if err == nil {
		err = to.Rewind()
	}
	return err
}

// sendArchive compresses, seals and writes what was copied.
func sendArchive(ctx context.Context, w io.Writer, copied io.Reader, passphrase string) error {
	out, err := sealTo(w, passphrase)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, readerUntil{ctx, copied})
	for _, c := range []io.Closer{z, out} {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// readerUntil is a reader that fails once its context has ended.
type readerUntil struct {
	ctx context.Context
	io.Reader
}

// Read reads from the reader.
func (r readerUntil) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
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
