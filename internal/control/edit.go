package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan/whatif"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// Edit is a change that is made of the newest documents, and written back to them.
type Edit struct {
	Cause
	// IfMatch is the ETag of the configuration that the operator has seen; "" and * match
	// any.
	IfMatch string
	// ConfirmWithin is for how long the change waits to be confirmed before the
	// configuration until then comes back; 0 does not wait. It is between
	// MinConfirm and MaxConfirm.
	ConfirmWithin time.Duration
	// DryRun takes the change through all that can fail, and makes it not. OnPaper leaves
	// out whether the documents can be written, as for a change that is made by hand.
	DryRun, OnPaper bool
	// Do returns the documents after the change: several edits, of several documents, are
	// one change. It is called while no other change runs, with the current documents and
	// their configuration, or the active one if they are rejected. Its error is the error
	// of the edit.
	Do func(docs config.Documents, now *config.Config) (config.Documents, error)
	// Check may reject the resulting configuration, which is valid. It may be nil.
	Check func(now, after *config.Config) error
	// Cutover is kept in the revision, nil for none. Do may fill it.
	Cutover *history.Cutover
	// Records returns what is put in streams, such as the audit, in the same commit as
	// the change. It may be nil.
	Records func(now, after *config.Config) []store.Record
}

// The bounds of ConfirmWithin.
const (
	MinConfirm = 10 * time.Second
	MaxConfirm = time.Hour
)

// Stale is the error of an edit when the documents are not those that the operator has
// seen. Nothing was changed.
type Stale struct {
	// Have is the ETag of the configuration as it is.
	Have string
}

// Error describes what to do.
func (s *Stale) Error() string {
	return "the configuration was changed since it was read; read it again, and repeat the edit"
}

// ErrWithin is the error of an edit with a ConfirmWithin out of bounds.
var ErrWithin = fmt.Errorf("confirm within %s to %s", MinConfirm, MaxConfirm)

// Change makes an edit, or changes nothing. The event describes it. The error is a *Refused
// that wraps *Stale, *ConfirmPending, *history.ReadOnly for a read-only document, or the
// error of Do.
func (c *Control) Change(e Edit) (Event, error) {
	ev, ch, err := c.change(e)
	if e.DryRun && ch != nil && err == nil {
		ev.WhatIf = c.rehearse(ch)
	}
	return ev, err
}

// change makes an edit under the lock. The change is nil if it was not begun.
func (c *Control) change(e Edit) (Event, *change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.ConfirmWithin != 0 && (e.ConfirmWithin < MinConfirm || e.ConfirmWithin > MaxConfirm):
		return Event{Cause: e.Cause}, nil, asRefused(ErrWithin)
	case c.mu.pending != nil && !e.OnPaper:
		return Event{Cause: e.Cause}, nil, asRefused(c.confirmPendingLocked())
	case c.shared && !e.OnPaper:
		// A machine that rejects the change of another does not take part in its wait.
		if p, waits, err := c.history.Pending(context.Background()); err == nil && waits {
			return Event{Cause: e.Cause}, nil, asRefused(&ConfirmPending{Revision: p.Revision, Until: p.Until})
		}
	}
	ch := c.newChangeLocked(e.Cause, nil)
	ch.within, ch.edit = e.ConfirmWithin, true
	ch.from = func() (config.Documents, error) {
		now, err := c.source.Read(c.mu.digested)
		if err != nil {
			return now, err
		}
		ch.made, ch.old = c.digestsLocked(now), now
		tag := etagOf(ch.made)
		if e.IfMatch != "" && e.IfMatch != "*" && e.IfMatch != tag {
			return now, &Stale{tag}
		}
		ch.now = c.saidLocked(now, tag, ch.next.Before)
		return e.Do(ch.now.Recall(now), ch.now)
	}
	ch.checked, ch.records, ch.cutover = e.Check, e.Records, e.Cutover
	if e.DryRun {
		ev, err := c.dryRunLocked(ch, !e.OnPaper)
		return ev, ch, err
	}
	err := c.makeLocked(ch)
	if errors.Is(err, history.ErrElsewhere) {
		err = asRefused(fmt.Errorf("%w: %w", err, &Stale{}))
	}
	if conflict := (*history.Conflict)(nil); errors.As(err, &conflict) {
		tag := ""
		if now, err := c.source.Read(nil); err == nil {
			tag = ETag(now)
		}
		err = asRefused(fmt.Errorf("%w: %w", conflict, &Stale{tag}))
	}
	return ch.event(err), ch, err
}

// rehearse decides recent requests by the plan of an edit that was not made. It may take
// up to whatif.MaxTime and needs no lock: other changes go on meanwhile. A mistake of ours
// in it must not cost the answer.
func (c *Control) rehearse(ch *change) (result *whatif.Result) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("broken invariant in a rehearsal", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			result = nil
		}
	}()
	return whatif.Run(c.Recent(), ch.next.Previous, ch.next.Plan)
}

// saidLocked returns the configuration of documents with this tag: the active one, unless
// the files were edited since it was applied.
func (c *Control) saidLocked(docs config.Documents, tag string, inForce *config.Config) *config.Config {
	inForce = inForce.Documents()
	if inForce != nil && tag == c.mu.seen {
		return inForce
	}
	if said, _, problems := config.LoadDocuments(docs, inForce); len(problems) == 0 {
		return said
	}
	if inForce == nil {
		return config.New()
	}
	return inForce
}

// ETag returns the entity tag of the documents that were applied last, "" if they were
// refused. It reads nothing.
func (c *Control) ETag() string {
	if s := c.standing.Load(); s != nil {
		return s.etag
	}
	return ""
}

// Documents returns the documents as they are now, and their ETag.
func (c *Control) Documents() (config.Documents, string, error) {
	docs, err := c.source.Read(nil)
	if err != nil {
		return docs, "", err
	}
	return docs, ETag(docs), nil
}

// ETag returns the entity tag of a configuration: that of all its documents.
func ETag(docs config.Documents) string {
	return etagOf(digestsBy(docs, func(d config.Document) history.Digest { return history.DigestOf(d.Data) }))
}

// ETagOf returns the entity tag that a configuration had at a revision.
func ETagOf(r history.Revision) string {
	all := make(map[string]history.Digest, len(r.Documents))
	for _, d := range r.Documents {
		all[d.Name] = d.Digest
	}
	return etagOf(all)
}

// etagOf returns the entity tag of documents with these names and digests.
func etagOf(all map[string]history.Digest) string {
	h := sha256.New()
	all = byBase(all) // machines with different folders have the same tag
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%q %s\n", name, all[name])
	}
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// digestsLocked returns the digest of each document; that of one that says what is in
// force is known.
func (c *Control) digestsLocked(docs config.Documents) map[string]history.Digest {
	known := c.knownDigestsLocked(docs)
	return digestsBy(docs, func(d config.Document) history.Digest {
		if digest, ok := known[d.Name]; ok {
			return digest
		}
		return history.DigestOf(d.Data)
	})
}

// knownDigestsLocked returns the digests of the documents of the active configuration.
func (c *Control) knownDigestsLocked(docs config.Documents) map[string]history.Digest {
	all := make(map[string]history.Digest, len(docs.List))
	for _, d := range docs.List {
		if digest, ok := c.mu.digests[d.Name]; ok && c.mu.digested.MadeFrom(d) {
			all[d.Name] = digest
		}
	}
	return all
}

// digestsBy returns the digest of each document, as of finds it.
func digestsBy(docs config.Documents, of func(config.Document) history.Digest) map[string]history.Digest {
	all := make(map[string]history.Digest, len(docs.List))
	for _, d := range docs.List {
		all[d.Name] = of(d)
	}
	return all
}
