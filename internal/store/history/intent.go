package history

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"headgate/internal/file"
	"headgate/internal/store"
)

// intentName is the file in the state directory that tells of a save on its way.
const intentName = "intent.json"

// maxIntent bounds the intent that is read.
const maxIntent = 4 << 20

// intent is what a save is about to do.
type intent struct {
	ID string `json:"id"`
	// Revision is the number that the save gives. Intents of an earlier version have 0.
	Revision  int      `json:"revision,omitempty"`
	Documents []*write `json:"documents"`
}

func newID() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func (h *History) intentFile() string { return filepath.Join(h.options.Dir, intentName) }

// writeIntent writes down what a save is about to do. Before a document is touched,
// syncIntent is to make it durable.
func (h *History) writeIntent(v *save) error {
	data, err := json.MarshalIndent(intent{ID: v.head.Intent, Revision: v.revision.Number, Documents: v.writes}, "", "  ")
	if err == nil {
		err = file.Put(h.intentFile(), append(data, '\n'))
	}
	h.point("intent")
	return unwrittenIntent(err)
}

// syncIntent waits until the intent is on the disk.
func (h *History) syncIntent() error { return unwrittenIntent(file.Sync(h.intentFile())) }

func unwrittenIntent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: write down what is to be saved: %w", store.ErrUnavailable, err)
}

// endIntent removes the intent before anything is acknowledged: later it must not act
// on what others have done since.
func (h *History) endIntent(v *save) {
	if len(v.writes) > 0 {
		h.removeIntent()
	}
}

func (h *History) removeIntent() {
	err := os.Remove(h.intentFile())
	if err == nil {
		err = file.SyncDir(h.options.Dir)
	}
	if err != nil {
		h.log.Error("the intent of a save is not removed", "error", err)
	}
	h.point("intent removed")
}

// recoverLocked brings the documents of a save that a crash has cut off to one side
// of its commit. Documents that are neither the old nor the new one are left alone.
func (h *History) recoverLocked(ctx context.Context) error {
	data, err := file.Read(h.intentFile(), maxIntent, "an intent has less")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(bytes.Trim(data, "\x00")) == 0 {
		h.log.Warn("a save was cut off by a loss of power before it touched a document")
		h.removeIntent()
		return nil
	}
	var in intent
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		h.log.Error("the intent of a save cannot be read, documents are left as they are", "error", err)
		return nil
	}
	committed := h.committedLocked(in.ID, in.Revision)
	for _, w := range in.Documents {
		if err := h.recoverDocument(ctx, w, committed); err != nil {
			h.log.Error("a save that a crash has cut off is not brought to its end; the next start tries again", "document", w.Name, "error", err)
			return nil
		}
	}
	h.log.Warn("a save was cut off by a crash", "completed", committed, "documents", len(in.Documents))
	h.endIntent(&save{writes: in.Documents})
	return nil
}

// committedLocked reports whether the save with an intent was committed: whether its
// revision is in the history. The head does not tell, as another machine may have saved
// since.
func (h *History) committedLocked(intent string, number int) bool {
	if h.mu.head.Intent == intent {
		return true
	}
	r, ok := h.findLocked(number)
	return ok && r.Intent == intent
}

// recoverDocument brings one document to its side. If the replaced file is neither of the
// two versions, it is a manual edit and is restored.
func (h *History) recoverDocument(ctx context.Context, w *write, committed bool) error {
	data, have, err := current(w.Path)
	if err != nil {
		return err
	}
	if have == w.Now && !committed && w.Now != Absent {
		if edit, digest, err := current(w.Temp); err == nil && digest != Absent && digest != w.Was && digest != w.Now {
			h.log.Warn("an edit by hand came between a save and its end; the edit stays", "document", w.Name)
			_ = edit
			return os.Rename(w.Temp, w.Path)
		}
	}
	want := w.Was
	if committed {
		want = w.Now
	}
	if have != want {
		ours := have == w.Was || have == w.Now
		if !ours && w.InPlace {
			if ours, err = h.isTorn(ctx, w, data); err != nil {
				return err
			}
		}
		if !ours {
			h.log.Warn("a document was changed by hand after a save was cut off; it stays as it is", "document", w.Name)
		} else if err := h.bring(ctx, w, have, want); err != nil {
			return err
		}
	}
	return removeTemp(w.Temp)
}

// bring makes a document what it is to be, as a write of its own.
func (h *History) bring(ctx context.Context, w *write, have, want Digest) error {
	var data []byte
	if want != Absent {
		var err error
		if data, err = h.content(ctx, want); err != nil {
			return err
		}
	}
	if err := removeTemp(w.Temp); err != nil {
		return err
	}
	b := &write{Name: w.Name, Path: w.Path, Temp: w.Temp, Was: have, Now: want, InPlace: w.InPlace, data: data}
	err := b.prepare(h.point)
	if err == nil {
		err = b.sync()
	}
	if cerr := b.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if _, err := b.place(h.point); err != nil {
		return err
	}
	return syncFolders([]*write{b})
}

// isTorn reports whether a document is one that was being written in place: a part of
// the new one over the old one.
func (h *History) isTorn(ctx context.Context, w *write, data []byte) (bool, error) {
	was, err := h.contentOrNone(ctx, w.Was)
	if err != nil {
		return false, err
	}
	now, err := h.contentOrNone(ctx, w.Now)
	if err != nil {
		return false, err
	}
	return torn(data, was, now), nil
}

func (h *History) contentOrNone(ctx context.Context, d Digest) ([]byte, error) {
	if d == Absent {
		return nil, nil
	}
	return h.content(ctx, d)
}

// tornBlock is how much of a file a disk writes at once, at least.
const tornBlock = 512

// torn reports whether data can be what a crash leaves of writing now over was: every
// block is of one or the other, or not written at all, but for one in which the write
// stopped; the length is that of one of them or in between.
func torn(data, was, now []byte) bool {
	if len(data) > max(len(was), len(now)) {
		return false
	}
	for at := 0; at < len(data); at += tornBlock {
		block := data[at:min(at+tornBlock, len(data))]
		w, n := part(was, at, len(block)), part(now, at, len(block))
		if bytes.Equal(block, w) || bytes.Equal(block, n) || len(bytes.Trim(block, "\x00")) == 0 {
			continue
		}
		cut := 0
		for cut < len(block) && cut < len(n) && block[cut] == n[cut] {
			cut++
		}
		if !bytes.HasPrefix(w[min(cut, len(w)):], block[cut:]) {
			return false
		}
	}
	return true
}

// part returns what data has at a place, as much as it has.
func part(data []byte, at, n int) []byte {
	at = min(at, len(data))
	return data[at:min(at+n, len(data))]
}

// clean removes replaced files. An edit that was made in one through an open file is kept
// next to the document.
func (h *History) clean(writes []*write) {
	for _, w := range writes {
		if w.InPlace {
			continue
		}
		have, err := digestAt(w.Temp, w.old, w.Was)
		if err == nil && have != Absent && have != w.Was && have != w.Now && w.placed {
			saved := w.Path + ".edited"
			err = os.Rename(w.Temp, saved)
			h.log.Error("a document was edited while it was saved; the edit is kept beside it", "document", w.Name, "kept", saved)
		} else if err == nil {
			err = removeTemp(w.Temp)
		}
		if err != nil {
			h.log.Error("a file that a save has put out of the way is not removed", "file", w.Temp, "error", fmt.Sprint(err))
		}
	}
}

// leftover is the name of a file that a save makes beside a document.
var leftover = regexp.MustCompile("^" + regexp.QuoteMeta(tempPrefix) + "[0-9a-f]{16}-[0-9]+$")

// leftAfter is how old a leftover has to be: another headgate may have documents in the
// same folder, and be in the middle of a save.
const leftAfter = time.Minute

// sweepLocked removes what a save left beside documents that a loss of power has cut off
// before its intent was on the disk: no document was touched then, and the content was
// never acknowledged. While there is an intent nothing is removed, as it may tell of them.
func (h *History) sweepLocked() {
	if _, err := os.Lstat(h.intentFile()); !errors.Is(err, fs.ErrNotExist) || len(h.mu.revisions) == 0 {
		return
	}
	done := map[string]bool{}
	for _, d := range h.mu.revisions[len(h.mu.revisions)-1].Documents {
		path, err := resolve(d.Name)
		dir := filepath.Dir(path)
		if err != nil || done[dir] {
			continue
		}
		done[dir] = true
		h.sweep(dir)
	}
}

func (h *History) sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the documents themselves will tell
	}
	for _, e := range entries {
		info, err := e.Info()
		if !leftover.MatchString(e.Name()) || err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < leftAfter {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := os.Remove(path); err != nil {
			h.log.Warn("a file that an interrupted save left cannot be removed", "file", path, "error", err)
			continue
		}
		h.log.Info("removed what an interrupted save left", "file", path)
	}
}
