// Package local keeps state on this machine: the state directory with its lock and
// the revisions of the configuration that were applied.
package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/file"
	"headgate/internal/source/disk"
)

// maxRevisions is how many applied configurations are kept.
const maxRevisions = 50

// State is the state directory. One process has it at a time.
type State struct {
	dir  string
	lock *os.File
}

// Open makes the directory if it is absent, readable for its owner only, and
// locks it. The error says when another process has it.
func Open(dir string) (*State, error) {
	if err := os.MkdirAll(filepath.Join(dir, "revisions"), 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	switch err := tryLock(lock); {
	case errors.Is(err, errLocked):
		lock.Close()
		return nil, fmt.Errorf("state directory %s is in use by another headgate; give each its own with --state", dir)
	case err != nil:
		lock.Close()
		return nil, fmt.Errorf("lock state directory %s: %w", dir, err)
	}
	s := &State{dir: dir, lock: lock}
	s.sweep()
	return s, nil
}

// sweep removes what a crash while writing has left.
func (s *State) sweep() {
	left, err := filepath.Glob(filepath.Join(s.dir, "revisions", file.Unfinished))
	if err != nil {
		return
	}
	for _, name := range left {
		os.Remove(name)
	}
}

// Dir returns the directory.
func (s *State) Dir() string { return s.dir }

// Close gives the directory free.
func (s *State) Close() error { return s.lock.Close() }

// Save keeps a configuration that is being applied as the newest revision and
// returns its name. One that is the newest already is not kept twice: restarts
// do not push history out. The oldest are removed when there are too many.
func (s *State) Save(data []byte) (string, error) {
	names, err := s.Revisions()
	if err != nil {
		return "", err
	}
	number := 1
	if n := len(names); n > 0 {
		newest := names[n-1]
		if kept, err := s.Revision(newest); err == nil && bytes.Equal(kept, data) {
			return newest, nil
		}
		number = numberOf(newest) + 1
	}
	name := fmt.Sprintf("%08d%s", number, suffix)
	if err := file.Replace(filepath.Join(s.dir, "revisions", name), data); err != nil {
		return "", fmt.Errorf("save revision: %w", err)
	}
	for len(names)+1 > maxRevisions {
		os.Remove(filepath.Join(s.dir, "revisions", names[0]))
		names = names[1:]
	}
	return name, nil
}

// Revisions returns the names of the kept configurations, oldest first. Other
// files are nobody's business.
func (s *State) Revisions() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "revisions"))
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	var names []string
	for _, e := range entries {
		if numberOf(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// suffix ends the name of a revision.
const suffix = ".yaml"

// numberOf returns the number in the name of a revision, 0 if it is none.
func numberOf(name string) int {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 8 {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// Revision returns a kept configuration.
func (s *State) Revision(name string) ([]byte, error) {
	if numberOf(name) == 0 {
		return nil, fmt.Errorf("read revision %q: not a revision's name", name)
	}
	return disk.Read(filepath.Join(s.dir, "revisions", name))
}
