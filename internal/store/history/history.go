// Package history saves the documents of the configuration, all of them or none, and
// remembers how they were: who changed what, when and why, and what was confirmed.
//
// A save has one atomic point, the commit of the store. Before it, an intent that
// tells the old and the new digest of each document is written to the state
// directory, and the new documents are put in their places by exchanging names, so
// that what a person has written there meanwhile comes out and is put back. After a
// crash the intent brings the documents to one side of that point: to what was saved
// if the commit was made, else to what was there. It acts only on documents that it
// has written itself.
//
// A History assumes that one process saves. Its methods may be called by several
// goroutines at once.
package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate/internal/store"
)

// Digest is the SHA-256 of a document in hexadecimal digits; Absent is that of one
// that is not there.
type Digest string

// Absent stands for a document that does not exist.
const Absent Digest = ""

// DigestOf returns the digest of a document that is there.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

// State is how a revision stands.
type State string

// The states of a revision.
const (
	// Applied is one that was put to use and not confirmed.
	Applied State = "applied"
	// Confirmed is one that was confirmed, or that needed no confirmation.
	Confirmed State = "confirmed"
	// RolledBack is one that was replaced by an earlier one, because it was not confirmed
	// or an operator decided so.
	RolledBack State = "rolled_back"
)

// Revision tells of the documents as they were put to use once.
type Revision struct {
	// Number grows with every revision.
	Number int `json:"number"`
	// When is when the change was applied.
	When time.Time `json:"when"`
	// Who made the change; it may be empty.
	Who string `json:"who,omitempty"`
	// Why is the reason that was given; it may be empty.
	Why string `json:"why,omitempty"`
	// Via is api, console, file, cli or docker.
	Via string `json:"via"`
	// Changes are the objects that were added, changed or removed, each as KIND/NAME, or
	// Everything if there are more than MaxChanges. It is empty where that is not known.
	Changes []string `json:"changes,omitempty"`
	// Cutover is set on a revision that moved ports to or from the addresses of another
	// proxy.
	Cutover *Cutover `json:"cutover,omitempty"`
	// State is how the revision stands now.
	State State `json:"state"`
	// Documents are all documents, not only those that were changed.
	Documents []Kept `json:"documents"`
	// Intent identifies the save that made the revision, so that a start after a crash
	// finds out whether the save was committed, even if other machines saved after it.
	Intent string `json:"intent,omitempty"`
	// Node is the machine that saved it, "" where the store is not shared.
	Node string `json:"node,omitempty"`
	// Saved is when the revision was written last, by the engine's clock. Reading sets it.
	Saved time.Time `json:"-"`
}

// Cutover describes ports that a revision moved to the addresses of the proxy that headgate
// replaces, or back.
type Cutover struct {
	// Moves are the ports with their addresses before and after.
	Moves []Move `json:"moves"`
	// Returns is the number of the revision whose moves this one undoes, 0 for none.
	Returns int `json:"returns,omitempty"`
}

// Move is a port that got a different address.
type Move struct {
	Port string         `json:"port"`
	From netip.AddrPort `json:"from"`
	To   netip.AddrPort `json:"to"`
}

// Name returns the number with eight digits, as files and pages write it.
func (r *Revision) Name() string { return fmt.Sprintf("%08d", r.Number) }

// Kept is a document in a revision.
type Kept struct {
	// Name is the file's.
	Name string `json:"name"`
	// Digest is that of its content, under which it is kept once, however many
	// revisions have it.
	Digest Digest `json:"sha256"`
	// Size is that of the content, in bytes.
	Size int `json:"size"`
}

// Everything stands in a revision for all objects.
const Everything = "*"

// Pending is a revision that waits to be confirmed.
type Pending struct {
	// Revision is the revision that waits for confirmation.
	Revision int `json:"revision"`
	// Before is the revision that is restored without a confirmation.
	Before int `json:"before"`
	// Until is when it is gone back to, for display: the clocks of machines differ.
	Until time.Time `json:"until"`
	// Within is for how long it waits, counted by each machine for itself. Versions before
	// this field have written 0.
	Within time.Duration `json:"within,omitempty"`
}

// head is the value of store.KeyHead.
type head struct {
	Revision int `json:"revision"`
	// Intent is that of the save which made the revision. Revisions that an earlier
	// version wrote have none themselves.
	Intent string `json:"intent,omitempty"`
}

// The bounds of what is remembered.
const (
	// MaxRevisions is how many revisions are kept.
	MaxRevisions = 500
	// MaxContent is how many bytes their documents take in all, compressed.
	MaxContent = 256 << 20
	// MaxChanges is how many changed objects a revision names.
	MaxChanges = 200
	// AlwaysKept is how many of the newest confirmed revisions are kept in any case.
	AlwaysKept = 10
)

// Options is what a History works with.
type Options struct {
	// Store keeps revisions and decides about saves.
	Store store.Store
	// Dir is the state directory, for the intent of a save.
	Dir string
	// Config names the document of revisions that an earlier version has kept
	// without a name.
	Config string
	// Log records what a crash has left, and files that are not removed. It may be nil.
	Log *slog.Logger
	// Point is called with a name at every step of a save, for tests that end the
	// process there. It is nil in service.
	Point func(name string)
	// MaxContent is how many bytes documents take in all, by default MaxContent.
	MaxContent int64
	// Shared says that other machines save to the store, too: content that no revision
	// has yet may be of a save on its way there, and is kept for a while.
	Shared bool
	// Node is the name of this machine among those that share the store.
	Node string
	// Folder returns where the documents are on this machine: their folder, or the path of
	// the only one. Where the store is shared, revisions hold the names of documents within the
	// folder, so that machines with different folders share them; they are still read so after a
	// machine has left the others. Nil has full paths only.
	Folder func() (path string, single bool)
}

// History is the revisions of the documents.
type History struct {
	options Options
	log     *slog.Logger
	point   func(string)

	mu struct {
		sync.Mutex
		revisions []Revision // in order
		head      head
		headAt    store.Revision
		stale     bool  // another machine has saved
		unsure    *save // a save of which it is not known whether it was committed, nil for none
	}
}

// ErrUnknown says that there is no revision with a number.
var ErrUnknown = errors.New("no such revision")

// ErrElsewhere says that another machine has saved since the change was made: make it again
// of what is saved now.
var ErrElsewhere = errors.New("another machine has saved meanwhile")

// Open reads the revisions, and completes or undoes a save that a crash has cut off.
// Where the store cannot be written to, what can be read is.
func Open(ctx context.Context, o Options) (*History, error) {
	h := &History{options: o, log: o.Log, point: o.Point}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.point == nil {
		h.point = func(string) {}
	}
	if h.options.MaxContent == 0 {
		h.options.MaxContent = MaxContent
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.loadLocked(ctx); err != nil {
		return nil, err
	}
	if err := h.recoverLocked(ctx); err != nil {
		return nil, err
	}
	h.sweepLocked()
	h.takeOverLocked(ctx)
	return h, nil
}

// Refresh reads the revisions anew, which other machines may have saved.
func (h *History) Refresh(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loadLocked(ctx)
}

// loadLocked reads what is kept. A revision that cannot be read is left out, which
// the log tells.
func (h *History) loadLocked(ctx context.Context) error {
	entries, _, err := h.options.Store.Snapshot(ctx, store.PrefixRevision)
	if err != nil {
		return fmt.Errorf("read revisions: %w", err)
	}
	h.mu.revisions = nil
	here := h.namesHere()
	for _, e := range entries {
		var r Revision
		if err := json.Unmarshal(e.Value, &r); err != nil || r.Number <= 0 || e.Key != keyOf(r.Number) {
			h.log.Warn("revision cannot be read", "key", e.Key, "error", err)
			continue
		}
		r.Saved = e.Modified
		here(r.Documents)
		h.mu.revisions = append(h.mu.revisions, r)
	}
	slices.SortFunc(h.mu.revisions, func(a, b Revision) int { return a.Number - b.Number })
	h.mu.head, h.mu.headAt = head{}, 0
	e, err := h.options.Store.Get(ctx, store.KeyHead)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the head of revisions: %w", err)
	}
	h.mu.headAt = e.Revision
	if err := json.Unmarshal(e.Value, &h.mu.head); err != nil {
		h.log.Warn("head of revisions cannot be read", "error", err)
	}
	return nil
}

func keyOf(number int) string { return fmt.Sprintf("%s%08d", store.PrefixRevision, number) }

// Head returns the revision that was saved last; ok is false when there is none.
func (h *History) Head() (r Revision, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.findLocked(h.mu.head.Revision)
}

func (h *History) findLocked(number int) (Revision, bool) {
	i, ok := slices.BinarySearchFunc(h.mu.revisions, number, func(r Revision, n int) int { return r.Number - n })
	if !ok {
		return Revision{}, false
	}
	return h.mu.revisions[i], true
}

// Get returns a revision. The error wraps ErrUnknown when there is none.
func (h *History) Get(number int) (Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.findLocked(number)
	if !ok {
		return r, fmt.Errorf("revision %d: %w", number, ErrUnknown)
	}
	return r, nil
}

// List returns revisions before a number, the newest first, at most n; before 0 means
// from the newest on.
func (h *History) List(before, n int) []Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Revision
	for _, r := range slices.Backward(h.mu.revisions) {
		if len(list) == n {
			break
		}
		if before == 0 || r.Number < before {
			list = append(list, r)
		}
	}
	return list
}

// NewestConfirmed returns the newest revision that is confirmed: what to serve when
// the documents cannot be used. ok is false when there is none.
func (h *History) NewestConfirmed() (r Revision, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range slices.Backward(h.mu.revisions) {
		if r.State == Confirmed {
			return r, true
		}
	}
	return r, false
}

// Pending returns the revision that waits to be confirmed; ok is false when none does.
func (h *History) Pending(ctx context.Context) (p Pending, ok bool, err error) {
	p, at, err := h.pendingAt(ctx)
	return p, at != 0, err
}

// pendingAt is Pending with the revision of its entry, 0 for none.
func (h *History) pendingAt(ctx context.Context) (p Pending, at store.Revision, err error) {
	e, err := h.options.Store.Get(ctx, store.KeyConfirm)
	if errors.Is(err, store.ErrNotFound) {
		return p, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &p)
	}
	if err != nil {
		return p, 0, fmt.Errorf("read what waits to be confirmed: %w", err)
	}
	return p, e.Revision, nil
}

// Confirm marks a revision as confirmed and ends its wait, with records for streams in
// the same commit.
func (h *History) Confirm(ctx context.Context, number int, records ...store.Record) error {
	return h.mark(ctx, number, Confirmed, records)
}

// RollBack marks a revision as rolled back and ends its wait. The documents of the
// earlier one are brought back by a Save, whose request can do this in the same commit.
func (h *History) RollBack(ctx context.Context, number int, records ...store.Record) error {
	return h.mark(ctx, number, RolledBack, records)
}

func (h *History) mark(ctx context.Context, number int, state State, records []store.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.stale = h.mu.stale || h.options.Shared
	if err := h.makeSureLocked(ctx); err != nil {
		return err
	}
	return h.markLocked(ctx, number, state, records)
}

func (h *History) markLocked(ctx context.Context, number int, state State, records []store.Record) error {
	r, ok := h.findLocked(number)
	if !ok {
		return fmt.Errorf("revision %d: %w", number, ErrUnknown)
	}
	c := store.Change{Append: records, Why: fmt.Sprintf("revision %d is %s", number, state)}
	r.State = state
	if err := h.addRevision(&c, r); err != nil {
		return err
	}
	p, at, err := h.pendingAt(ctx)
	switch {
	case err != nil:
		return err
	case at != 0 && p.Revision == number:
		c.Delete = append(c.Delete, store.KeyConfirm)
		c.If = append(c.If, store.Condition{Key: store.KeyConfirm, Revision: at})
	case state == Confirmed && h.options.Shared:
		return fmt.Errorf("confirm revision %d: %w", number, ErrElsewhere) // its wait has ended
	}
	_, err = h.options.Store.Commit(ctx, c)
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return fmt.Errorf("mark revision %d as %s: %w: %w", number, state, ErrElsewhere, err)
	}
	if err != nil {
		return fmt.Errorf("mark revision %d as %s: %w", number, state, err)
	}
	h.replaceLocked(r)
	return nil
}

func (h *History) addRevision(c *store.Change, r Revision) error {
	if h.options.Shared && h.options.Folder != nil {
		r.Documents = slices.Clone(r.Documents)
		for i := range r.Documents {
			r.Documents[i].Name = baseOf(r.Documents[i].Name)
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	c.Put = append(c.Put, store.Entry{Key: keyOf(r.Number), Value: append(data, '\n')})
	return nil
}

// replaceLocked puts a revision in its place among the others.
func (h *History) replaceLocked(r Revision) {
	i, ok := slices.BinarySearchFunc(h.mu.revisions, r.Number, func(r Revision, n int) int { return r.Number - n })
	if ok {
		h.mu.revisions[i] = r
		return
	}
	h.mu.revisions = slices.Insert(h.mu.revisions, i, r)
}
