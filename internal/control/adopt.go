package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/config/disk"
	"headgate/internal/file"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// Where several machines share a store, the documents are in it and in the files of each
// machine. What decides between them is what this machine wrote last (applied):
//
//   - The files are what it wrote: the store wins, and the files are rewritten.
//   - The files are not, and the store is: a person has edited them here. The edit is saved
//     as any other.
//   - Neither is: the store wins, and the edit is kept beside the file as NAME.edited.
//
// A machine that shares nothing notes what it wrote, too: it may become the first of several.

// appliedName is the file in the state directory that records what this machine wrote last.
const appliedName = "applied.json"

// appliedState is what this machine wrote last.
type appliedState struct {
	// Revision is its number.
	Revision int `json:"revision"`
	// Documents are the digests by the names of the files in their folder.
	Documents map[string]history.Digest `json:"documents"`
	// Next is the revision that it was about to write, nil after that: if the machine ends in
	// between, what the files then have is not an edit. It has no Next.
	Next *appliedState `json:"next,omitempty"`
}

// is reports whether a machine wrote this revision. The number alone does not tell: after a restore,
// or on a leader that yielded, another revision has it.
func (a *appliedState) is(revision int, documents map[string]history.Digest) bool {
	return a.Revision == revision && maps.Equal(a.Documents, byBase(documents))
}

func (c *Control) appliedFile() string { return filepath.Join(c.options.StateDir, appliedName) }

// readApplied returns what this machine wrote last; nothing if it has not yet.
func (c *Control) readApplied() (a appliedState) {
	data, err := file.Read(c.appliedFile(), 1<<20, "a list of documents has less")
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("what was written last is not known: the store decides about the documents", "error", err)
		return appliedState{}
	}
	return a
}

// noteAppliedLocked records that the active configuration is that of the files.
func (c *Control) noteAppliedLocked() {
	number, err := strconv.Atoi(c.mu.revision)
	if err != nil {
		return // it could not be saved as a revision
	}
	if err := c.writeApplied(appliedState{Revision: number, Documents: byBase(c.mu.digests)}); err != nil {
		c.log.Error("cannot record which revision was written last", "error", err)
	}
}

// noteNextLocked records what this machine is about to write.
func (c *Control) noteNextLocked(a *adopted) error {
	wrote := c.readApplied()
	wrote.Next = &appliedState{Revision: a.revision.Number, Documents: map[string]history.Digest{}}
	for _, d := range a.docs.List {
		wrote.Next.Documents[filepath.Base(d.Name)] = history.DigestOf(d.Data)
	}
	return c.writeApplied(wrote)
}

func (c *Control) writeApplied(a appliedState) error {
	data, err := json.Marshal(a)
	if err == nil {
		err = file.Replace(c.appliedFile(), append(data, '\n'))
	}
	return err
}

// byBase returns digests by the names of the files in their folder.
func byBase(digests map[string]history.Digest) map[string]history.Digest {
	out := make(map[string]history.Digest, len(digests))
	for name, d := range digests {
		out[filepath.Base(name)] = d
	}
	return out
}

// followShared applies what other machines save, until ctx ends.
func (c *Control) followShared(ctx context.Context) {
	for ctx.Err() == nil {
		_, at, err := c.state.Snapshot(ctx, store.KeyConfirm) // for the position only
		if err == nil {
			c.followAll(ctx)
			for batch, werr := range c.state.Watch(ctx, "", at) {
				if werr != nil {
					break
				}
				c.followBatch(ctx, batch)
			}
		}
		clock.Sleep(ctx, rewatch)
	}
}

// followAll takes what other machines have changed until now.
func (c *Control) followAll(ctx context.Context) {
	c.changed()
	c.holds.refresh(ctx)
	c.splits.refresh(ctx)
	c.keys.follow(ctx)
	c.ech.notify()
	c.followPurge(ctx, nil)
	c.followDrain(ctx)
}

// followBatch takes what one commit has changed.
func (c *Control) followBatch(ctx context.Context, b store.Batch) {
	if touches(b, store.KeyHead, store.KeyConfirm) {
		c.changed()
	}
	if touches(b, store.PrefixNode+c.options.Node) {
		c.followDrain(ctx)
	}
	if touches(b, store.KeyTickets) {
		c.keys.follow(ctx)
	}
	for _, e := range b.Put {
		switch {
		case strings.HasPrefix(e.Key, store.PrefixECH):
			c.ech.notify()
		case e.Key == store.KeyPurge:
			c.followPurge(ctx, e.Value)
		case strings.HasPrefix(e.Key, store.PrefixHeld):
			c.holds.follow(ctx, e.Key)
		case strings.HasPrefix(e.Key, store.PrefixSplit):
			c.splits.follow(ctx, e.Key)
		}
	}
	for _, key := range b.Delete {
		if strings.HasPrefix(key, store.PrefixHeld) {
			c.holds.follow(ctx, key)
		}
	}
}

// touches reports whether a commit has changed one of these keys.
func touches(b store.Batch, keys ...string) bool {
	for _, key := range keys {
		for _, e := range b.Put {
			if e.Key == key {
				return true
			}
		}
		for _, gone := range b.Delete {
			if gone == key {
				return true
			}
		}
	}
	return false
}

// Reconsider looks at the documents again: an edit by hand that was refused because the
// shared store was away is saved when it has come back. Before this machine serves there is
// nothing to reconsider: the start decides, and the watch looks after it.
func (c *Control) Reconsider() {
	if c.ready.Load() {
		c.changed()
	}
}

// adopted are documents of the shared store on their way to the files.
type adopted struct {
	revision history.Revision
	docs     config.Documents
	same     bool              // the files are those of the revision
	seen     map[string][]byte // what the files had when this was decided
	keep     map[string]bool   // files that a person has edited, by name
	gone     []string          // files that the revision has not
	warn     func(name, kept string)
}

// place writes the documents. Each is replaced in one step; after a crash in between the
// files are those of the revision or what this machine wrote last, and the next start goes
// on.
func (a *adopted) place() error {
	for _, d := range a.docs.List {
		if err := a.placeOne(d.Name, d.Data); err != nil {
			return fmt.Errorf("write what was saved in the shared store: %w", err)
		}
	}
	for _, name := range a.gone {
		if err := a.placeOne(name, nil); err != nil {
			return fmt.Errorf("remove what was removed in the shared store: %w", err)
		}
	}
	return nil
}

// maxPlace is how often a document is placed that is edited at the same moment.
const maxPlace = 5

// placeOne writes or, if data is nil, removes a document. A file that had this content when
// that was decided is left alone, so that an edit since then is found as an edit. One that
// is edited just now is kept beside the document.
func (a *adopted) placeOne(name string, data []byte) (err error) {
	was, there := a.seen[name]
	if there && data != nil && string(was) == string(data) {
		return nil
	}
	keep := a.keep[name]
	for range maxPlace {
		digest := history.Absent
		if there {
			digest = history.DigestOf(was)
		}
		if there && keep {
			if err := a.setAside(name, was); err != nil {
				return err
			}
		}
		err = history.Place(name, data, digest)
		if !errors.As(err, new(*history.Conflict)) {
			return err
		}
		edited, rerr := file.Read(name, maxEdited, "a document has less")
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return rerr
		}
		was, there, keep = edited, rerr == nil, true
	}
	return err
}

// maxEdited limits a document that is kept beside the one of the store, in bytes.
const maxEdited = 64 << 20

// setAside keeps an edit by hand beside its file.
func (a *adopted) setAside(name string, data []byte) error {
	kept := name + ".edited"
	if err := file.Replace(kept, data); err != nil {
		return fmt.Errorf("keep the edit of %s beside it: %w", name, err)
	}
	a.warn(name, kept)
	return nil
}

// reconcileLocked compares the files with the shared store. It reports whether the store
// took precedence: then its configuration is active, or was rejected, and the files are not
// read.
func (c *Control) reconcileLocked() bool {
	ctx := context.Background()
	if err := c.history.Refresh(ctx); err != nil {
		c.log.Error("the revisions of the shared store cannot be read", "error", err)
		return false
	}
	defer c.followPendingLocked()
	if c.withoutLocked() {
		return true
	}
	head, ok := c.history.Head()
	if !ok {
		return false // this machine is the first
	}
	a, err := c.adoption(head)
	if err != nil {
		c.log.Error("the documents of the shared store cannot be used here", "revision", head.Name(), "error", err)
		c.mu.refused = refusedState(asRefused(err))
		if c.current.Load() == nil && !c.serveWroteLocked(head) {
			return false // nothing can be served
		}
		c.mu.degraded = true
		c.publishLocked()
		return true // the files are not saved in its place
	}
	if a == nil {
		return false
	}
	if c.mu.revision == head.Name() && a.same {
		return c.current.Load() != nil // already active
	}
	if c.mu.tried == "adopt "+head.Name() && len(a.keep) == 0 {
		return true // it was refused here, and that was reported
	}
	ch := c.newChangeLocked(Cause{Who: head.Who, Why: head.Why, Via: Via(head.Via), When: head.When}, func() (config.Documents, error) { return a.docs, nil })
	ch.adopted = a
	if err := c.makeLocked(ch); err != nil {
		c.log.Error("a change of another machine is refused here: the configuration before it is served", "revision", head.Name(), "error", err)
		if c.current.Load() == nil && !c.serveWroteLocked(head) {
			return false // nothing can be served
		}
		c.mu.tried = "adopt " + head.Name()
		c.publishLocked()
		return true
	}
	c.mu.seen = etagOf(c.mu.digests)
	c.publishLocked()
	return true
}

// overtakenLocked reports whether the files differ from the configuration in the shared store and are
// not an edit of it. Such files must not be saved.
func (c *Control) overtakenLocked() bool {
	if err := c.history.Refresh(context.Background()); err != nil {
		return false // nothing can be saved
	}
	head, ok := c.history.Head()
	if !ok {
		return false
	}
	a, err := c.adoption(head)
	return err != nil || a != nil && !a.same
}

// serveWroteLocked serves the configuration that this machine wrote last. The start calls it if the
// machine cannot use the revision of the shared store. The files are not saved as an edit, which would
// undo the change of another machine on all machines. It reports whether a configuration is served.
func (c *Control) serveWroteLocked(head history.Revision) bool {
	wrote := c.readApplied().Revision
	refused := c.mu.refused
	for _, from := range []func() (config.Documents, error){
		func() (config.Documents, error) { return c.kept(wrote) },
		func() (config.Documents, error) { return c.source.Read(nil) },
	} {
		ch := c.newChangeLocked(Cause{Who: "headgate", Why: "this machine rejects revision " + head.Name() + " of the shared store", Via: ViaFile}, from)
		ch.verb, ch.revision = FellBack, fmt.Sprintf("%08d", wrote)
		if c.makeLocked(ch) == nil {
			c.mu.refused = refused // that of the shared store
			return true
		}
	}
	return false
}

// adoption decides between the files and the revision that was saved last. It returns nil
// when a person has edited the files since this machine wrote that revision.
func (c *Control) adoption(head history.Revision) (*adopted, error) {
	docs, err := c.kept(head.Number)
	if err != nil {
		return nil, err
	}
	now, unread := c.source.Read(nil)
	if unread != nil {
		now = readable(docs) // there are none, or not all can be read: the store has some
	}
	a := &adopted{revision: head, keep: map[string]bool{}, seen: map[string][]byte{}}
	a.warn = func(name, kept string) {
		c.log.Error("a document was edited here while another machine saved: the shared store wins, and the edit is kept beside it", "document", name, "kept", kept, "revision", head.Name())
		c.watcher.Node(NodeEvent{Kind: EditSetAside, Node: c.options.Node, Document: name, Kept: kept, Revision: head.Number})
	}
	for _, d := range now.List {
		a.seen[d.Name] = d.Data
	}
	a.docs = docs
	if err := c.fits(docs); err != nil {
		return nil, err
	}
	want := map[string]history.Digest{}
	for _, d := range a.docs.List {
		want[d.Name] = history.DigestOf(d.Data)
	}
	wrote := c.readApplied()
	created := c.options.Created && wrote.Revision == 0 // and was not edited since
	same := len(now.List) == len(want)
	edited := false
	for _, d := range now.List {
		have := history.DigestOf(d.Data)
		if have == want[d.Name] {
			continue
		}
		same = false
		if have != wrote.Documents[filepath.Base(d.Name)] && !created {
			a.keep[d.Name], edited = true, true
		}
		if want[d.Name] == history.Absent {
			a.gone = append(a.gone, d.Name)
		}
	}
	switch {
	case same:
		a.same = true
		return a, nil
	case unread == nil && wrote.is(head.Number, want) && (edited || len(now.List) != len(wrote.Documents)):
		return nil, nil // the store has not changed since: it is an edit by hand
	}
	return a, nil
}

// readable returns the files of documents that can be read.
func readable(docs config.Documents) (now config.Documents) {
	for _, d := range docs.List {
		if data, err := file.Read(d.Name, maxEdited, "a document has less"); err == nil {
			now.List = append(now.List, config.Document{Name: d.Name, Data: data})
		}
	}
	return now
}

// fits returns why this machine cannot serve documents: it serves one file, and they are
// several, or its folder would not read one of them. No other file is written.
func (c *Control) fits(docs config.Documents) error {
	path, single := c.source.Folder()
	if single && len(docs.List) != 1 {
		return fmt.Errorf("the shared store has %d documents, and this machine serves the file %s: start it with a folder as --config", len(docs.List), path)
	}
	for _, d := range docs.List {
		if !single && !disk.IsDocumentName(filepath.Base(d.Name)) {
			return fmt.Errorf("the shared store has a configuration file named %s, but this machine uses the folder %s, in which only files that end with .yaml are read: rename the file on the machine that has it", filepath.Base(d.Name), path)
		}
	}
	return nil
}

// unsavedLocked reports whether the active configuration could not be saved, because the
// shared store was unavailable at the start.
func (c *Control) unsavedLocked() bool { return c.shared && c.mu.revision == "" }

// flipTime is within which time two changes of who edits the files by hand are refused.
const flipTime = time.Minute

// Flipping is the error of an edit by hand while several machines edit the files in turn, as
// a tool does that writes different files on each of them.
type Flipping struct {
	// Nodes are the machines.
	Nodes []string
}

// Error names the machines.
func (f *Flipping) Error() string {
	return fmt.Sprintf("the configuration files were edited in turn on the machines %s within a minute: edit them on one machine only", strings.Join(f.Nodes, ", "))
}

// flippingLocked returns why an edit by hand is refused: the files were edited on one machine,
// then on another, and now on one that is not the last.
func (ch *change) flippingLocked() error {
	c := ch.control
	if !c.shared || ch.made != nil || ch.verb != Applied {
		return nil
	}
	last := c.history.List(0, 2)
	if len(last) < 2 || c.isRevisionLocked(&last[0], ch.docs) {
		return nil
	}
	head, before := last[0], last[1]
	if !byHand(head) || !byHand(before) || head.Node == c.options.Node || before.Node == head.Node {
		return nil
	}
	now, err := c.state.Now(context.Background())
	if err != nil || now.Sub(before.Saved) > flipTime {
		return nil // without the store, the save fails
	}
	nodes := []string{before.Node, head.Node, c.options.Node}
	slices.Sort(nodes)
	return &Flipping{slices.Compact(nodes)}
}

// byHand reports whether a revision was made of an edit of the files on a machine that is
// known. Commands and the API change what all machines have, so they do not count.
func byHand(r history.Revision) bool { return r.Node != "" && r.Via == string(ViaFile) }
