package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"headgate/internal/store"
)

// Save puts documents in their places and records them as a revision, or does nothing
// of it. What is the newest revision already, and changes nothing of how that stands,
// makes no other: restarts do not push history out. The error is *Conflict or
// *ReadOnly when a document is in the way, and wraps store.ErrUnavailable when the
// revision cannot be kept, and store.ErrSingleCopy when it is saved on this machine only.
func (h *History) Save(ctx context.Context, q Request) (Revision, error) {
	r, end, err := h.Start(ctx, q)
	if late := end(); err == nil {
		err = late
	}
	return r, err
}

// Start is Save up to its atomic point: when it returns, the save is durable, and a start
// after a crash uses it. The rest, which removes the intent and replaced files, is in end,
// so that the caller can use the result before. It must call end in any case, before it
// acknowledges the save; until then the history must not be used otherwise. An error of end
// wraps store.ErrSingleCopy: the save is made, and must not be acknowledged.
func (h *History) Start(ctx context.Context, q Request) (r Revision, end func() error, err error) {
	h.mu.Lock()
	begun := false
	defer func() {
		if !begun {
			h.mu.Unlock()
		}
	}()
	v, err := h.beginLocked(ctx, q)
	if err != nil || v == nil {
		if v == nil {
			r, _ = h.findLocked(h.mu.head.Revision)
		}
		return r, func() error { return nil }, err
	}
	begun = true
	return v.revision, func() error {
		defer h.mu.Unlock()
		h.endLocked(ctx, v)
		return v.late
	}, nil
}

// beginLocked does what can fail of a save. It returns nil for nothing to save, or for what
// cannot be.
func (h *History) beginLocked(ctx context.Context, q Request) (*save, error) {
	if err := h.makeSureLocked(ctx); err != nil {
		return nil, err
	}
	v, err := h.planLocked(q)
	if err != nil || v == nil {
		return nil, err
	}
	if err := h.keepOld(ctx, v); err != nil {
		return v, err
	}
	return v, h.carryOut(ctx, v)
}

// endLocked ends a save whose commit was made.
func (h *History) endLocked(ctx context.Context, v *save) {
	h.clean(v.writes)
	h.endIntent(v)
	q := v.request
	h.mu.head = v.head
	h.replaceLocked(v.revision)
	if q.RollsBack != 0 {
		if r, ok := h.findLocked(q.RollsBack); ok {
			r.State = RolledBack
			h.replaceLocked(r)
		}
	}
	if err := h.pruneLocked(ctx); err != nil {
		h.log.Error("old revisions are not removed", "error", err)
	}
}

// Try returns why Save could not put documents in their places, as far as that can be
// told without doing it.
func (h *History) Try(q Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.planLocked(q)
	return err
}

// save is a Save on its way.
type save struct {
	request  Request
	revision Revision
	head     head
	writes   []*write
	old      map[Digest][]byte // content that is replaced
	contents []store.Entry     // that are kept by the commit
	late     error             // why it must not be acknowledged although it is made; nil if it may
}

// planLocked decides what a save does, without touching anything. It returns nil for
// nothing.
func (h *History) planLocked(q Request) (*save, error) {
	v := &save{request: q, old: map[Digest][]byte{}}
	for i := range q.Documents {
		d := &q.Documents[i]
		now := d.now()
		if d.Data != nil {
			v.revision.Documents = append(v.revision.Documents, Kept{Name: d.Name, Digest: now, Size: len(d.Data)})
		}
		if now == d.Was {
			continue
		}
		w, err := h.planWrite(d, now, v.old)
		if err != nil {
			return nil, err
		}
		v.writes = append(v.writes, w)
	}
	if len(v.writes) == 0 && h.isHeadLocked(v.revision.Documents) && q.Within == 0 && q.RollsBack == 0 && len(q.Records) == 0 {
		return nil, nil
	}
	number := h.mu.head.Revision
	if n := len(h.mu.revisions); n > 0 {
		number = max(number, h.mu.revisions[n-1].Number)
	}
	v.revision.Number = number + 1
	v.revision.When, v.revision.Who, v.revision.Why, v.revision.Via = q.When.UTC(), q.Who, q.Why, q.Via
	v.revision.Cutover = q.Cutover
	if v.revision.Changes = q.Changes; len(q.Changes) > MaxChanges {
		v.revision.Changes = []string{Everything}
	}
	v.revision.State = Confirmed
	if q.Within > 0 || q.Unconfirmed {
		v.revision.State = Applied
	}
	v.head = head{Revision: v.revision.Number, Intent: newID()}
	v.revision.Intent, v.revision.Node = v.head.Intent, h.options.Node
	for i, w := range v.writes {
		w.Temp = filepath.Join(filepath.Dir(w.Path), fmt.Sprintf("%s%s-%d", tempPrefix, v.head.Intent, i))
	}
	return v, nil
}

func (h *History) isHeadLocked(docs []Kept) bool {
	r, ok := h.findLocked(h.mu.head.Revision)
	if !ok || len(r.Documents) != len(docs) {
		return false
	}
	for i, k := range docs {
		if r.Documents[i] != k {
			return false
		}
	}
	return true
}

// planWrite looks at a document that is to be written.
func (h *History) planWrite(d *Document, now Digest, old map[Digest][]byte) (*write, error) {
	path, err := resolve(d.Name)
	if err != nil {
		return nil, &ReadOnly{Name: d.Name, Err: err}
	}
	data, have := d.Old, d.Was // whether it still stands there is for the write to see
	if data == nil || have == Absent {
		if data, have, err = current(path); err != nil {
			return nil, &ReadOnly{Name: d.Name, Err: err}
		}
	}
	if have != d.Was {
		return nil, &Conflict{Name: d.Name, Have: have}
	}
	if have != Absent {
		old[have] = data
	}
	w := &write{Name: d.Name, Path: path, Was: d.Was, Now: now, data: d.Data, old: data}
	if err := w.choose(); err != nil {
		return nil, &ReadOnly{Name: d.Name, Err: err}
	}
	return w, nil
}

// withCommit is how many bytes of contents go into the commit of their revision.
const withCommit = store.MaxChange / 2

// keepOld keeps the contents of a save that a crash before the commit needs: the old ones,
// and of the new ones those that are written in place, to tell what it has left of them.
func (h *History) keepOld(ctx context.Context, v *save) error {
	for digest, data := range v.old {
		if err := h.keep(ctx, digest, data); err != nil {
			return err
		}
	}
	return h.keepNew(ctx, v, true)
}

// keepNew keeps the new contents of a save, of those that are written in place or of the
// others. These are needed after the commit, so that those that fit go into the commit
// itself; until they are compressed the documents are written.
func (h *History) keepNew(ctx context.Context, v *save, inPlace bool) error {
	room, many := withCommit, contents{history: h}
	for i := range v.request.Documents {
		d := &v.request.Documents[i]
		if d.Data == nil {
			continue
		}
		digest := d.now()
		if v.inPlace(digest) != inPlace {
			continue
		}
		if slices.ContainsFunc(v.contents, func(e store.Entry) bool { return e.Key == partKey(digest, 0) }) {
			continue // two documents say the same
		}
		if kept, err := h.isKept(ctx, digest); err != nil {
			return err
		} else if kept {
			continue
		}
		parts, err := d.pack()
		if err != nil {
			return err
		}
		if len(parts) == 1 && len(parts[0]) <= room && len(v.contents) < store.MaxOperations/2 && !inPlace {
			room -= len(parts[0])
			v.contents = append(v.contents, store.Entry{Key: partKey(digest, 0), Value: parts[0]})
			continue
		}
		if err := many.add(ctx, digest, parts); err != nil {
			return err
		}
	}
	return many.commit(ctx)
}

// inPlace reports whether a document with this content is written in place.
func (v *save) inPlace(d Digest) bool {
	return slices.ContainsFunc(v.writes, func(w *write) bool { return w.InPlace && w.Now == d })
}

// carryOut writes the intent, writes and puts the documents in their places and commits; the intent
// stays. When one of these fails the documents before it are put back.
func (h *History) carryOut(ctx context.Context, v *save) error {
	if len(v.writes) > 0 {
		if err := h.writeIntent(v); err != nil {
			return err
		}
	}
	err := h.placeAll(ctx, v)
	if err == nil {
		err = h.keepNew(ctx, v, false)
	}
	if err == nil {
		err = h.commit(ctx, v)
	}
	if err != nil {
		h.putBack(v)
		return err
	}
	h.point("saved")
	return nil
}

// placeAll puts the new documents in their places.
func (h *History) placeAll(ctx context.Context, v *save) error {
	if err := h.prepareAll(v); err != nil {
		return err
	}
	for _, w := range v.writes {
		have, err := w.place(h.point)
		if isBusy(err) {
			have, err = h.placeBusy(ctx, v, w)
		}
		var conflict *Conflict
		switch {
		case errors.As(err, &conflict):
			return &Conflict{Name: w.Name, Have: have}
		case err != nil:
			return unwritten(w.Name, err)
		}
		h.point("document placed")
	}
	return syncFolders(v.writes)
}

// prepareAll writes the new documents beside the old ones. When it returns they and the
// intent are on the disk: all are written first, so that the disk can take them together.
func (h *History) prepareAll(v *save) error {
	failed := make([]error, len(v.writes)+1)
	for i, w := range v.writes {
		if failed[i] = w.prepare(h.point); failed[i] != nil {
			break
		}
	}
	if err := errors.Join(failed...); err == nil && len(v.writes) > 0 {
		var all sync.WaitGroup
		all.Go(func() { failed[len(v.writes)] = h.syncIntent() })
		for i, w := range v.writes {
			all.Go(func() { failed[i] = w.sync() })
		}
		all.Wait()
	}
	for i, w := range v.writes {
		if err := w.close(); failed[i] == nil {
			failed[i] = err
		}
	}
	for i, w := range v.writes {
		if failed[i] != nil {
			return unwritten(w.Name, failed[i])
		}
	}
	return failed[len(v.writes)]
}

// unwritten returns the error of a document that could not be written: *ReadOnly if it is
// read-only, else one that wraps store.ErrUnavailable, as for a full disk.
func unwritten(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
		return &ReadOnly{Name: name, Err: err}
	}
	return fmt.Errorf("%w: %s cannot be written: %w", store.ErrUnavailable, name, err)
}

// placeBusy writes a document in place because its name cannot be renamed over. The
// intent has to tell that first, and the content has to be kept.
func (h *History) placeBusy(ctx context.Context, v *save, w *write) (Digest, error) {
	if err := h.keep(ctx, w.Now, w.data); err != nil {
		return Absent, err
	}
	if err := removeTemp(w.Temp); err != nil {
		return Absent, err
	}
	w.InPlace = true
	if err := errors.Join(h.writeIntent(v), h.syncIntent()); err != nil {
		return Absent, err
	}
	return w.place(h.point)
}

// commit is the atomic point of a save.
func (h *History) commit(ctx context.Context, v *save) error {
	q := v.request
	c := store.Change{If: []store.Condition{{Key: store.KeyHead, Revision: h.mu.headAt}}, Put: slices.Clone(v.contents), Append: q.Records, Who: q.Who, Why: q.Why}
	if err := addJSON(&c, store.KeyHead, v.head); err != nil {
		return err
	}
	if err := h.addRevision(&c, v.revision); err != nil {
		return err
	}
	if err := h.addWait(ctx, &c, v); err != nil {
		return err
	}
	at, err := h.options.Store.Commit(ctx, c)
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		h.mu.stale = true
		return fmt.Errorf("save revision %d: %w: %w", v.revision.Number, ErrElsewhere, err)
	}
	if err != nil {
		at, made, known := h.wasCommitted(ctx, v)
		if made {
			h.mu.headAt = at
			if errors.Is(err, store.ErrSingleCopy) {
				v.late = fmt.Errorf("save revision %d: %w", v.revision.Number, err)
			}
			return nil
		}
		if !known {
			h.mu.unsure = v
		}
		return fmt.Errorf("save revision %d: %w", v.revision.Number, err)
	}
	h.mu.headAt = at
	return nil
}

// addWait adds to a commit what a save says about confirmation.
func (h *History) addWait(ctx context.Context, c *store.Change, v *save) error {
	q := v.request
	if r, ok := h.findLocked(q.RollsBack); ok {
		r.State = RolledBack
		if err := h.addRevision(c, r); err != nil {
			return err
		}
	}
	if q.Within > 0 {
		return addJSON(c, store.KeyConfirm, Pending{Revision: v.revision.Number, Before: h.mu.head.Revision, Until: q.When.Add(q.Within).UTC(), Within: q.Within})
	}
	p, at, err := h.pendingAt(ctx)
	switch {
	case err != nil:
		return err
	case q.RollsBack != 0 && p.Revision != q.RollsBack && h.options.Shared:
		return fmt.Errorf("revert revision %d: %w", q.RollsBack, ErrElsewhere) // its wait has ended
	case at == 0:
		return nil
	}
	c.Delete = append(c.Delete, store.KeyConfirm) // what follows a change ends its wait
	if p.Revision == q.RollsBack {
		c.If = append(c.If, store.Condition{Key: store.KeyConfirm, Revision: at}) // another machine may confirm it at this moment
	}
	return nil
}

// wasCommitted asks, after a commit that came back with an error, whether it was made.
// Known is false if the store does not say that either.
func (h *History) wasCommitted(ctx context.Context, v *save) (at store.Revision, made, known bool) {
	e, err := h.options.Store.Get(context.WithoutCancel(ctx), keyOf(v.revision.Number))
	if errors.Is(err, store.ErrNotFound) {
		return 0, false, true
	}
	var have Revision
	if err != nil || json.Unmarshal(e.Value, &have) != nil {
		return 0, false, false
	}
	return e.Revision, have.Intent == v.head.Intent, true
}

// makeSureLocked reads anew what is kept, if it is not known what became of a save. It was
// refused, and its documents were put back: if its revision was made, it is marked as
// rolled back.
func (h *History) makeSureLocked(ctx context.Context) error {
	v := h.mu.unsure
	if h.mu.stale {
		if err := h.loadLocked(ctx); err != nil {
			return err
		}
		h.mu.stale = false
	}
	if v == nil {
		return nil
	}
	if err := h.loadLocked(ctx); err != nil {
		return err
	}
	if h.committedLocked(v.head.Intent, v.revision.Number) {
		if err := h.markLocked(ctx, v.revision.Number, RolledBack, nil); err != nil {
			return err
		}
	}
	h.mu.unsure = nil
	return nil
}

func addJSON(c *store.Change, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	c.Put = append(c.Put, store.Entry{Key: key, Value: append(data, '\n')})
	return nil
}

// putBack brings the documents of a failed save to what they were, and forgets the
// intent. If that does not work either, the intent stays for the next start.
func (h *History) putBack(v *save) {
	h.point("put back")
	for _, w := range v.writes {
		if err := w.undo(v.old[w.Was]); err != nil {
			h.log.Error("document could not be put back; the next start tries again", "document", w.Name, "error", err)
			return
		}
	}
	h.clean(v.writes)
	h.endIntent(v)
}
