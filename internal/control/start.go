package control

import (
	"context"
	"errors"
	"fmt"
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
	c.startHostFieldsLocked()
	reverted := c.startRevertedLocked()
	c.finishRestore() // what a process that was killed has left
	if reverted {
		return nil
	}
	if c.shared && c.reconcileLocked() {
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

// startRevertedLocked reverts a change that was pending when the process ended. It reports
// whether the previous configuration is served now.
func (c *Control) startRevertedLocked() bool {
	if c.shared {
		return false // other machines serve it and may confirm it: the wait continues
	}
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
		c.retryRevertLocked(err)
		return c.serveBeforeLocked(p, err)
	}
	return c.current.Load() != nil
}

// serveBeforeLocked serves the configuration before an unconfirmed change that cannot be
// reverted yet, as on a full disk. It reports whether it can be served.
func (c *Control) serveBeforeLocked(p history.Pending, why error) bool {
	r, err := c.history.Get(p.Before)
	if err != nil || c.current.Load() != nil || c.mu.pending == nil {
		return false
	}
	docs, err := c.source.Read(nil)
	if err != nil || c.editedLocked(p, docs) || c.serveKeptLocked(r, fmt.Sprintf("revision %d was not confirmed, and cannot be reverted yet", p.Revision)) != nil {
		return false
	}
	c.mu.refused, c.mu.tried = refusedState(asRefused(why)), ETag(docs)
	c.publishLocked()
	return true
}

// fallBackLocked serves the newest revision that was confirmed.
func (c *Control) fallBackLocked() error {
	r, ok := c.history.NewestConfirmed()
	if !ok || !c.standsHere(&r) {
		return errNoRevision
	}
	return c.serveKeptLocked(r, "the documents are refused")
}

// serveKeptLocked serves a revision in place of the documents.
func (c *Control) serveKeptLocked(r history.Revision, why string) error {
	ch := c.newChangeLocked(Cause{Who: "headgate", Why: why, Via: ViaFile}, func() (config.Documents, error) { return c.kept(r.Number) })
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
