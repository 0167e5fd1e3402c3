// Package disk reads configurations from files: one file, or all *.yaml files of a
// directory in the order of their names. Open selects the path, Read reads the files within
// limits and without blocking on other processes, and Watch reports when they may have
// changed.
package disk

import (
	"log/slog"
	"os"
	"path/filepath"

	"headgate/internal/config"
)

// Source is the documents of a file or a folder. Its methods may be called by several
// goroutines at once.
type Source struct {
	path string // absolute
	log  *slog.Logger
}

// Open returns the source for a path. Every Read checks again whether it is a file or a
// directory.
func Open(path string, log *slog.Logger) *Source {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Source{path, log}
}

// Path returns the path of the file or folder.
func (s *Source) Path() string { return s.path }

// Folder returns the path, and whether it is that of one file. What does not exist counts
// as a file.
func (s *Source) Folder() (path string, single bool) {
	info, err := os.Stat(s.path)
	return s.path, err != nil || !info.IsDir()
}

// Read returns the current documents. Relative paths in them begin in their directory.
// Known, which may be nil, is the previous configuration: documents that have not changed
// are not copied. The error names a file that is missing, not a regular file, too large, or
// not readable.
func (s *Source) Read(known *config.Config) (config.Documents, error) {
	return documents(s.path, known)
}
