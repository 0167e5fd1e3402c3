package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"headgate/internal/store"
)

// Archive is a backup that was unpacked to be read. Close removes it.
type Archive struct {
	*Store
	release func()
}

// ErrArchiveOpen says that another archive is being read.
var ErrArchiveOpen = errors.New("another archive is being restored")

// OpenArchive unpacks an archive in the state directory, holds it against its manifest,
// and opens what it holds. Nothing else is touched. The error wraps
// store.ErrUnavailable when the disk is the reason; otherwise it is about the archive.
// What a crash leaves of it is removed by the next Open.
func (s *Store) OpenArchive(ctx context.Context, r io.Reader, passphrase string) (*Archive, error) {
	if !s.archive.TryLock() {
		return nil, ErrArchiveOpen
	}
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
	if onDisk := (*fs.PathError)(nil); errors.As(err, &onDisk) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, s.explain(err))
	}
	return nil, fmt.Errorf("restore: %w; nothing was changed", err)
}

// Close removes what was unpacked.
func (a *Archive) Close() error {
	defer a.release()
	return a.Store.Close()
}
