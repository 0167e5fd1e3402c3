// Package disk gives configurations that stand in files: one file, or all *.yaml of a
// folder, in order of name. Open names it, Read reads it whole, bounded, and never
// waiting for anybody, and Watch tells when it may have changed.
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

// Open returns the source of a path. Whether it is a file or a folder is looked at
// anew by every Read.
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

// Read returns the documents as they are now. Relative paths in them begin in the
// folder in which they stand. The documents of known, which may be nil, are likely to
// be the same still: of those that are, nothing is copied. The error says what is wrong
// with one of them: not there, not a regular file, too large, not readable.
func (s *Source) Read(known *config.Config) (config.Documents, error) {
	return documents(s.path, known)
}
