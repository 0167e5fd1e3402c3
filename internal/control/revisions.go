package control

import (
	"fmt"
	"path/filepath"

	"headgate/internal/config"
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
