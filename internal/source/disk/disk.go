// Package disk gives configurations that stand in files: one file, or all *.yaml of a
// folder, in order of name. Open names it, Read reads it whole, bounded, and never
// waiting for anybody, and Watch tells when it may have changed.
package disk

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"headgate/internal/config"
	"headgate/internal/file"
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

// Read returns the documents as they are now. Relative paths in them begin in the
// folder in which they stand. The error says what is wrong with one of them: not
// there, not a regular file, too large, not readable.
func (s *Source) Read() (config.Documents, error) {
	names, dir, err := s.names()
	if err != nil {
		return config.Documents{}, err
	}
	docs := config.Documents{Dir: dir}
	for _, name := range names {
		data, err := Read(name)
		if err != nil {
			return config.Documents{}, err
		}
		docs.List = append(docs.List, config.Document{Name: name, Data: data})
	}
	return docs, nil
}

// names returns the paths of the documents and their folder.
func (s *Source) names() (names []string, dir string, err error) {
	info, err := os.Stat(s.path)
	if err != nil || !info.IsDir() {
		return []string{s.path}, filepath.Dir(s.path), nil // Read says what is wrong
	}
	entries, err := os.ReadDir(s.path) // in order of name
	if err != nil {
		return nil, "", fmt.Errorf("read the configuration's folder: %w", err)
	}
	for _, e := range entries {
		if isDocument(e) {
			names = append(names, filepath.Join(s.path, e.Name()))
		}
	}
	switch {
	case len(names) == 0:
		return nil, "", fmt.Errorf("%s has no *.yaml file", s.path)
	case len(names) > config.MaxDocuments:
		return nil, "", fmt.Errorf("%s has %d *.yaml files, there may be %d", s.path, len(names), config.MaxDocuments)
	}
	return names, s.path, nil
}

// isDocument reports whether an entry of a folder is a document. Those with a dot in
// front are not: editors and saves keep their work in such.
func isDocument(e fs.DirEntry) bool {
	return !strings.HasPrefix(e.Name(), ".") && filepath.Ext(e.Name()) == ".yaml" && !e.IsDir()
}

// Read reads a configuration file. The error says what is wrong with it: not
// there, not a regular file, too large, not readable.
func Read(name string) ([]byte, error) {
	const max = int64(config.MaxFileSize)
	return file.Read(name, max, fmt.Sprintf("a configuration has at most %d", max))
}
