package control

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/disk"
	"headgate/internal/store/history"
)

// Revisions returns kept revisions before a number, the newest first, at most n; before 0
// means from the newest on.
func (c *Control) Revisions(before, n int) []history.Revision { return c.history.List(before, n) }

// Revision returns a kept revision and its documents. The error wraps
// history.ErrUnknown when there is none.
func (c *Control) Revision(number int) (history.Revision, config.Documents, error) {
	r, err := c.history.Get(number)
	if err != nil {
		return r, config.Documents{}, err
	}
	docs, err := c.kept(number)
	return r, docs, err
}

// Writable returns why a document cannot be written by an edit, nil if it can.
func (c *Control) Writable(name string) error {
	full, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	return history.Writable(full)
}

// Folder returns the folder that documents are the configuration of, and where others can
// be made; "" if headgate serves one file.
func (c *Control) Folder(docs config.Documents) string {
	if filepath.Clean(docs.Dir) == filepath.Clean(c.source.Path()) {
		return docs.Dir
	}
	return ""
}

// NewDocument returns documents with another one without objects, and its name. It is made
// when they are saved. The error says why it cannot be made.
func (c *Control) NewDocument(docs config.Documents, name string) (config.Documents, string, error) {
	folder := c.Folder(docs)
	switch {
	case folder == "":
		return docs, "", fmt.Errorf("there is no document %q, and this headgate serves the file %s alone; to have several documents, start it with a folder as --config", name, c.source.Path())
	case filepath.Dir(name) == filepath.Clean(folder):
		name = filepath.Base(name)
	}
	if !disk.IsName(name) {
		return docs, "", fmt.Errorf("there is no document %q, and none of this name can be made; write one like shop.yaml", name)
	}
	if len(docs.List) >= config.MaxDocuments {
		return docs, "", fmt.Errorf("there are %d documents already, which is the most", len(docs.List))
	}
	full := filepath.Join(folder, name)
	docs.List = append(slices.Clone(docs.List), config.Document{Name: full, Data: []byte("version: 1\n")})
	slices.SortFunc(docs.List, func(a, b config.Document) int { return strings.Compare(a.Name, b.Name) })
	return docs, full, nil
}
