package httpdoc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"headgate/internal/discovery"
	"headgate/internal/file"
)

// keptSuffix ends the names of the files of documents.
const keptSuffix = ".yaml"

// keptFile returns the name of the file in which the document is kept, "" where nothing is.
// It is named by the entry and the URL: the document of another URL is not taken for it.
func (s *Source) keptFile() string {
	if s.state == "" {
		return ""
	}
	of := sha256.Sum256([]byte(s.settings.URL))
	return filepath.Join(s.state, s.name+"-"+hex.EncodeToString(of[:6])+keptSuffix)
}

// keep writes a document to its file.
func (s *Source) keep(data []byte) error {
	name := s.keptFile()
	if name == "" {
		return nil
	}
	if err := os.MkdirAll(s.state, 0o700); err != nil {
		return err
	}
	return file.Replace(name, data)
}

// readKept uses the document that was kept, as if it was downloaded now.
func (s *Source) readKept() {
	name := s.keptFile()
	if name == "" {
		return
	}
	data, err := file.Read(name, maxBytes, "more than was written")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	digest := sha256.Sum256(data)
	if err == nil {
		var issues []discovery.Issue
		snapshot := *s.Snapshot()
		if snapshot.Objects, issues = s.read(data, digest, nil); len(issues) == 0 {
			snapshot.Known, s.used = true, digest
			s.Restore(snapshot)
			return
		}
		err = errors.New(issues[0].Message)
	}
	s.log.Warn("the saved document cannot be used", "error", err)
}

// Forget removes the document that was kept. It is called after Stop.
func (s *Source) Forget() {
	if name := s.keptFile(); name != "" {
		_ = os.Remove(name) // one that stays does no harm
	}
}
