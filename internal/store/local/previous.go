package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/file"
)

// The folders that an upgrade of the state, and the way back, use.
const (
	// previousName has a copy of the directory as it was before its version grew.
	previousName = "previous"
	// comingName is previousName on its way back: all of the newer state is aside.
	comingName = "previous.restoring"
	// asideName, with the time behind it, has the newer state after the way back.
	asideName = "newer"
	// movingName is asideName while the newer state is moved there.
	movingName = "newer.moving"
)

// uncopied are entries of the directory that are no state, or are made again.
var uncopied = []string{lockName, stagedName, restoringName, spoolName, previousName, comingName, movingName, "admin.sock"}

// NoPrevious is the error of RestorePrevious when there is no copy.
type NoPrevious struct{ Dir string }

// Error says when there is one.
func (e *NoPrevious) Error() string {
	return fmt.Sprintf("%s has no copy of an earlier state: one is made when a newer headgate converts the directory", e.Dir)
}

// versionOf returns the version of a directory, and whether it holds state at all.
// Directories without the file version have 1.
func versionOf(dir string) (version int, held bool) {
	if data, err := file.Read(filepath.Join(dir, versionName), 64, "a version has few"); err == nil {
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		return n, err == nil
	}
	names := []string{dbName, "revisions", "cdn"}
	for _, m := range moved {
		names = append(names, m.from)
	}
	return 1, slices.ContainsFunc(names, func(name string) bool { return exists(filepath.Join(dir, name)) })
}

// exists reports whether there is a file.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// keepPrevious copies a directory whose version is lower than that of this program, before
// it is converted. A copy of the same version is kept: a crash came between, and the
// directory may be converted in part. Without the copy nothing is converted.
func (s *Store) keepPrevious(next int) error {
	have, held := versionOf(s.dir)
	if !held || have >= next {
		return nil
	}
	to := filepath.Join(s.dir, previousName)
	if kept, ok := versionOf(to); ok && kept == have {
		return nil
	}
	unfinished := to + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := copyFolder(s.dir, unfinished); err != nil {
		return fmt.Errorf("copy state of version %d before its conversion: %w", have, err)
	}
	if err := file.Replace(filepath.Join(unfinished, versionName), fmt.Appendln(nil, have)); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(unfinished, to); err != nil {
		return err
	}
	s.log.Info("copied the state before its conversion; headgate restore --previous brings it back", "version", have, "to", to)
	return nil
}

// copyFolder copies the regular files of a state directory.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if filepath.Dir(inside) == "." && (slices.Contains(uncopied, inside) || inside == previousName+".new" || strings.HasPrefix(inside, asideName+"-")) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, inside), 0o700)
		case d.Type().IsRegular():
			return copyFile(path, filepath.Join(to, inside))
		}
		return nil
	})
}

// copyFile copies a file and waits until the copy is on the disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// RestorePrevious puts the copy in place that was made before the directory was
// converted to the version of this program, so that an earlier headgate can open it. The
// state of now is kept in a folder beside it, whose path is returned. A call that a crash
// has interrupted is finished by the next one. The errors are *InUse, *NoPrevious and
// those of the disk.
func RestorePrevious(dir string, now time.Time) (aside string, err error) {
	s := &Store{dir: dir}
	s.defaults()
	if err := s.takeLock(nil); err != nil {
		return "", err
	}
	defer s.lock.Close()
	previous, coming := filepath.Join(dir, previousName), filepath.Join(dir, comingName)
	aside = filepath.Join(dir, asideName+"-"+now.UTC().Format(stampLayout))
	if _, err := os.Stat(coming); errors.Is(err, fs.ErrNotExist) {
		if _, held := versionOf(previous); !held {
			return "", &NoPrevious{dir}
		}
		moving := filepath.Join(dir, movingName)
		if err := moveEntries(dir, moving, func(name string) bool {
			return !slices.Contains(uncopied, name) && !strings.HasPrefix(name, asideName+"-")
		}); err != nil {
			return "", err
		}
		if err := os.Rename(moving, aside); err != nil {
			return "", err
		}
		if err := os.Rename(previous, coming); err != nil {
			return "", err
		}
	}
	if err := moveEntries(coming, dir, func(string) bool { return true }); err != nil {
		return "", err
	}
	return aside, os.Remove(coming)
}

// moveEntries moves chosen entries of a folder into another.
func moveEntries(from, to string, chosen func(name string) bool) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !chosen(e.Name()) {
			continue
		}
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
