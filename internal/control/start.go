package control

import (
	"context"
	"errors"
	"path/filepath"

	"headgate/internal/config"
	"headgate/internal/store/history"
)

// start applies the documents for the first time. A change that was never confirmed is
// reverted before. Documents that are refused leave the newest revision that was
// confirmed to be served, loudly, until they are right; Strict serves nothing then.
func (c *Control) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	reverted := c.startRevertedLocked()
	c.settle() // what a process that was killed has left
	if reverted {
		return nil
	}
	docs, unread := c.source.Read(nil)
	err := c.applyReadLocked(Cause{Via: ViaFile}, docs, unread)
	if err == nil || c.options.Strict || errors.Is(err, ErrStopping) {
		return err
	}
	if c.fallBackLocked() != nil {
		return err
	}
	if unread == nil {
		c.mu.tried = ETag(docs) // the watch's first look is not to refuse them once more
	}
	return nil
}

// startRevertedLocked brings back what was in force before a change that was waiting to
// be confirmed when the process ended. It reports whether that is served now.
func (c *Control) startRevertedLocked() bool {
	p, ok, err := c.history.Pending(context.Background())
	if err != nil {
		c.log.Error("whether a change waits to be confirmed cannot be read", "error", err)
	}
	if !ok || err != nil {
		return false
	}
	if r, err := c.history.Get(p.Revision); err != nil || !c.standsHere(&r) {
		return false
	}
	c.mu.pending = &p
	if _, err := c.revertLocked(p, nil); err != nil {
		c.log.Error("configuration before a change that was not confirmed cannot be brought back", "revision", p.Before, "error", err)
		c.mu.pending = nil
		return false
	}
	return c.current.Load() != nil
}

// fallBackLocked serves the newest revision that was confirmed.
func (c *Control) fallBackLocked() error {
	r, ok := c.history.NewestConfirmed()
	if !ok || !c.standsHere(&r) {
		return errNoRevision
	}
	ch := c.newChangeLocked(Cause{Who: "headgate", Why: "the documents are refused", Via: ViaFile}, func() (config.Documents, error) { return c.kept(r.Number) })
	ch.verb, ch.revision = FellBack, r.Name()
	return c.makeLocked(ch)
}

// errNoRevision says that there is nothing to fall back to.
var errNoRevision = errors.New("no revision of these documents was confirmed")

// standsHere reports whether the documents of a revision are those of the source. One of
// another file is nothing to be served in its place.
func (c *Control) standsHere(r *history.Revision) bool {
	for _, d := range r.Documents {
		if d.Name != c.source.Path() && filepath.Dir(d.Name) != c.source.Path() {
			return false
		}
	}
	return true
}
