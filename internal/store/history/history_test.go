package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
)

// place is a state directory and a folder of documents.
type place struct {
	t     *testing.T
	dir   string
	docs  string
	store *local.Store
	h     *history.History
	point func(string)
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: filepath.Join(t.TempDir(), "state"), docs: t.TempDir()}
	p.open()
	t.Cleanup(func() { p.store.Close() })
	return p
}

// open opens the place, anew if it is open.
func (p *place) open() {
	p.t.Helper()
	if p.store != nil {
		p.store.Close()
	}
	log := slog.New(slog.NewTextHandler(p.t.Output(), nil))
	var err error
	if p.store, err = local.Open(local.Options{Dir: p.dir, Log: log}); err != nil {
		p.t.Fatal(err)
	}
	p.h, err = history.Open(p.t.Context(), history.Options{Store: p.store, Dir: p.dir, Config: "/etc/headgate/headgate.yaml", Log: log, Point: func(name string) {
		if p.point != nil {
			p.point(name)
		}
	}})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) file(name string) string { return filepath.Join(p.docs, name) }

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), []byte(text), 0o640); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) has(name, want string) {
	p.t.Helper()
	data, err := os.ReadFile(p.file(name))
	if errors.Is(err, fs.ErrNotExist) && want == "" {
		return
	}
	if err != nil || string(data) != want {
		p.t.Errorf("%s holds %q, %v; want %q", name, data, err, want)
	}
}

// doc is a document that goes from one text to another, "" for none.
func (p *place) doc(name, was, now string) history.Document {
	d := history.Document{Name: p.file(name)}
	if was != "" {
		d.Was = history.DigestOf([]byte(was))
	}
	if now != "" {
		d.Data = []byte(now)
	}
	return d
}

func (p *place) request(docs ...history.Document) history.Request {
	return history.Request{Documents: docs, When: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Who: "anna", Why: "because", Via: "api",
		Records: []store.Record{{Stream: store.StreamAudit, Data: []byte("saved")}}}
}

func (p *place) save(docs ...history.Document) history.Revision {
	p.t.Helper()
	r, err := p.h.Save(p.t.Context(), p.request(docs...))
	if err != nil {
		p.t.Fatalf("Save = %v", err)
	}
	return r
}

// tidy checks that a save has left nothing behind.
func (p *place) tidy() {
	p.t.Helper()
	for _, pattern := range []string{filepath.Join(p.docs, ".headgate*"), filepath.Join(p.docs, "*.edited"), filepath.Join(p.dir, "intent.json"), filepath.Join(p.dir, "staged", "*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			p.t.Errorf("left behind: %v %v", left, err)
		}
	}
}

func (p *place) audit() int {
	p.t.Helper()
	page, err := p.store.Page(p.t.Context(), store.StreamAudit, 0, store.MaxPage)
	if err != nil {
		p.t.Fatal(err)
	}
	return len(page)
}

// What was saved stands before the end of the save: the caller puts it to use meanwhile, and
// a start after a crash finds it.
func TestASaveStandsBeforeItsEnd(t *testing.T) {
	p := newPlace(t)
	p.write("a", "old")
	intent := filepath.Join(p.dir, "intent.json")
	r, end, err := p.h.Start(t.Context(), history.Request{Documents: []history.Document{p.doc("a", "old", "new")}, When: time.Now(), Via: "api"})
	if err != nil {
		t.Fatal(err)
	}
	p.has("a", "new")
	if _, err := os.Stat(intent); err != nil {
		t.Errorf("the intent: %v", err)
	}
	end()
	if _, err := os.Stat(intent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the intent is left: %v", err)
	}

	_, _, err = p.h.Start(t.Context(), history.Request{Documents: []history.Document{p.doc("a", "new", "newer")}, When: time.Now(), Via: "api"})
	if err != nil {
		t.Fatal(err)
	}
	p.open() // it ended before the end
	p.has("a", "newer")
	if _, err := os.Stat(intent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the intent is left after the start: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(p.docs, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if next, err := p.h.Get(r.Number + 1); err != nil || next.State != history.Confirmed {
		t.Errorf("the revision: %+v, %v", next, err)
	}
}

func TestSaveReplacesMakesAndRemovesDocuments(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "a: 1\n")
	p.write("b.yaml", "b: 1\n")
	p.write("d.yaml", "d: 1\n")
	r := p.save(p.doc("a.yaml", "a: 1\n", "a: 2\n"), p.doc("b.yaml", "b: 1\n", ""), p.doc("c.yaml", "", "c: 1\n"), p.doc("d.yaml", "d: 1\n", "d: 1\n"))
	for name, want := range map[string]string{"a.yaml": "a: 2\n", "b.yaml": "", "c.yaml": "c: 1\n", "d.yaml": "d: 1\n"} {
		p.has(name, want)
	}
	p.tidy()
	if r.Number != 1 || r.Who != "anna" || r.Why != "because" || r.Via != "api" || r.State != history.Confirmed || len(r.Documents) != 3 {
		t.Errorf("got %+v", r)
	}
	p.open()
	docs, err := p.h.Documents(t.Context(), 1)
	if err != nil || len(docs) != 3 || string(docs[0].Data) != "a: 2\n" || docs[1].Name != p.file("c.yaml") || string(docs[2].Data) != "d: 1\n" {
		t.Errorf("Documents(1) = %v, %v", docs, err)
	}
	if head, ok := p.h.Head(); !ok || head.Number != 1 {
		t.Errorf("the head is %+v", head)
	}
}

func TestWhatIsServedAlreadyIsNoNewRevision(t *testing.T) {
	p := newPlace(t)
	q := p.request(p.doc("a.yaml", "a", "a")) // a file that headgate has read, and that nobody writes
	q.Records = nil
	for _, want := range []int{1, 1} {
		if r, err := p.h.Save(t.Context(), q); err != nil || r.Number != want {
			t.Errorf("got %d, %v; want %d", r.Number, err, want)
		}
	}
	p.open()
	if r, err := p.h.Save(t.Context(), q); err != nil || r.Number != 1 {
		t.Errorf("after a restart: got %d, %v; want 1", r.Number, err)
	}
	p.save(p.doc("a.yaml", "b", "b"))
	if r := p.save(p.doc("a.yaml", "a", "a")); r.Number != 3 {
		t.Errorf("back to the first content: got %d, want 3", r.Number)
	}
}

func TestAHandEditIsNeverLost(t *testing.T) {
	for _, at := range []string{"", "intent", "document prepared", "before exchange"} {
		for _, text := range []string{"b: by hand\n", "b: 9\n"} { // the other is as long as what it replaces
			t.Run(at+" "+text, func(t *testing.T) {
				p := newPlace(t)
				p.write("a.yaml", "a: 1\n")
				p.write("b.yaml", "b: 1\n")
				edit := func(name string) {
					if name == at || at == "" && name == "begin" {
						p.write("b.yaml", text)
					}
				}
				edit("begin")
				p.point = edit
				a, b := p.doc("a.yaml", "a: 1\n", "a: 2\n"), p.doc("b.yaml", "b: 1\n", "b: 2\n")
				a.Old, b.Old = []byte("a: 1\n"), []byte("b: 1\n")
				_, err := p.h.Save(t.Context(), p.request(a, b))
				var conflict *history.Conflict
				if !errors.As(err, &conflict) || conflict.Name != p.file("b.yaml") || conflict.Have != history.DigestOf([]byte(text)) {
					t.Errorf("got %v, want a conflict with the edit", err)
				}
				p.has("a.yaml", "a: 1\n")
				p.has("b.yaml", text)
				p.tidy()
				if _, ok := p.h.Head(); ok || p.audit() != 0 {
					t.Error("a refused save is a revision")
				}
			})
		}
	}
}

// An edit that falls exactly between the look at a document and the exchange comes out
// of the exchange, and goes back.
func TestAnEditInTheLastMomentComesBack(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "a: 1\n")
	p.point = func(name string) {
		if name == "before exchange" {
			next := p.file("a.yaml.swp")
			if err := os.WriteFile(next, []byte("a: by hand\n"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(next, p.file("a.yaml")); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := p.h.Save(t.Context(), p.request(p.doc("a.yaml", "a: 1\n", "a: 2\n")))
	var conflict *history.Conflict
	if !errors.As(err, &conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	p.has("a.yaml", "a: by hand\n")
	p.tidy()
}

// The intent and the documents go to the disk together, so that after a loss of power there
// may be an intent that holds nothing. Then no document was touched.
func TestAnIntentThatNeverCameToTheDiskIsForgotten(t *testing.T) {
	for _, text := range []string{"", "\x00\x00\x00"} {
		p := newPlace(t)
		p.write("a.yaml", "1")
		p.save(p.doc("a.yaml", "1", "2"))
		intent := filepath.Join(p.dir, "intent.json")
		if err := os.WriteFile(intent, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p.open()
		if _, err := os.Stat(intent); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the intent %q is left: %v", text, err)
		}
		p.has("a.yaml", "2")
	}
}

// A loss of power can take the intent and leave what a save had written beside a document.
func TestWhatALossOfPowerLeftBesideADocumentIsRemoved(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "1")
	p.save(p.doc("a.yaml", "1", "2"))
	old := time.Now().Add(-time.Hour)
	const left = ".headgate-save-0123456789abcdef-0"
	for name, stays := range map[string]bool{
		left: false, ".headgate-save-0123456789abcdef-1": true, // by another headgate, just now
		".headgate-save-notes": true, "x.headgate-save-0123456789abcdef-0": true,
	} {
		p.write(name, "half of a doc")
		if err := os.Chtimes(p.file(name), old, old); err != nil || strings.HasSuffix(name, "-1") {
			if err := errors.Join(err, os.Chtimes(p.file(name), time.Now(), time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		p.open()
		if _, err := os.Stat(p.file(name)); (err == nil) != stays {
			t.Errorf("%s: %v, stays should be %v", name, err, stays)
		}
	}
	p.write(left, "told of by an intent")
	intent := filepath.Join(p.dir, "intent.json")
	if err := errors.Join(os.Chtimes(p.file(left), old, old), os.WriteFile(intent, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p.open()
	p.has(left, "told of by an intent")
}

// Before the first document is exchanged, all that a crash needs is written.
func TestASaveThatCannotKeepItsContentPutsTheDocumentsBack(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "1")
	p.save(p.doc("a.yaml", "1", "1"))
	p.point = func(name string) {
		if name == "document placed" {
			p.has("a.yaml", "2")
			p.store.Close() // from here on nothing is kept
		}
	}
	if _, err := p.h.Save(t.Context(), p.request(p.doc("a.yaml", "1", "2"))); err == nil {
		t.Error("a save that is kept nowhere went well")
	}
	p.point = nil
	p.has("a.yaml", "1")
	p.tidy()
	p.open()
	if r, ok := p.h.Head(); !ok || r.Number != 1 {
		t.Errorf("the newest revision is %+v, %v; want 1", r, ok)
	}
}

// A disk that fails right after a document was taken away, or put in its place, or
// exchanged, leaves the documents as they were.
func TestADocumentThatCannotBeReadAfterItsRenamingIsPutBack(t *testing.T) {
	for _, c := range []struct{ name, at, was, now string }{
		{"removed", "document taken away", "1", ""},
		{"replaced", "exchanged", "1", "2"},
		{"made", "document linked", "", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			if c.was != "" {
				p.write("a.yaml", c.was)
			}
			p.write("b.yaml", "1")
			aside := filepath.Join(t.TempDir(), "aside")
			var temp string
			p.point = func(name string) {
				switch name {
				case c.at: // what has the temporary name cannot be read, removed or exchanged
					left, err := filepath.Glob(filepath.Join(p.docs, ".headgate-save-*-0"))
					if err != nil || len(left) != 1 {
						t.Fatalf("temporary names: %v, %v", left, err)
					}
					temp = left[0]
					err = os.Rename(temp, aside)
					if c.name != "replaced" {
						err = errors.Join(err, os.MkdirAll(filepath.Join(temp, "in the way"), 0o700))
					}
					if err != nil {
						t.Fatal(err)
					}
					p.write("b.yaml", "by hand") // for what can go on all the same
				case "put back":
					if err := errors.Join(os.RemoveAll(temp), os.Rename(aside, temp)); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, err := p.h.Save(t.Context(), p.request(p.doc("a.yaml", c.was, c.now), p.doc("b.yaml", "1", "2")))
			if err == nil || temp == "" {
				t.Errorf("Save = %v with the temporary name %q", err, temp)
			}
			p.point = nil
			p.has("a.yaml", c.was)
			p.has("b.yaml", "by hand")
			p.tidy()
		})
	}
}

// A new document whose temporary name cannot be removed at once stands, and the name is
// removed at the end of the save.
func TestANewDocumentStandsThoughItsTemporaryNameStays(t *testing.T) {
	p := newPlace(t)
	aside := filepath.Join(t.TempDir(), "aside")
	var temp string
	p.point = func(name string) {
		if name == "document linked" {
			left, _ := filepath.Glob(filepath.Join(p.docs, ".headgate-save-*"))
			temp = left[0]
			if err := errors.Join(os.Rename(temp, aside), os.MkdirAll(filepath.Join(temp, "in the way"), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, end, err := p.h.Start(t.Context(), p.request(p.doc("new.yaml", "", "ours")))
	if err != nil {
		t.Errorf("Begin = %v", err)
	}
	if err := errors.Join(os.RemoveAll(temp), os.Rename(aside, temp)); err != nil {
		t.Fatal(err)
	}
	end()
	p.has("new.yaml", "ours")
	p.tidy()
}

// An edit that comes out when a document is removed is kept, also where somebody has made
// another one in its place meanwhile.
func TestAnEditThatFindsItsPlaceTakenIsKeptBeside(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "1")
	p.point = func(name string) {
		switch name {
		case "intent":
			p.write("a.yaml", "by hand")
		case "document taken away":
			p.write("a.yaml", "made meanwhile")
		}
	}
	if _, err := p.h.Save(t.Context(), p.request(p.doc("a.yaml", "1", ""))); err == nil {
		t.Error("a save over an edit went well")
	}
	p.has("a.yaml", "made meanwhile")
	p.has("a.yaml.edited", "by hand")
}

func TestADocumentThatIsMadeMeanwhileStays(t *testing.T) {
	p := newPlace(t)
	p.point = func(name string) {
		if name == "document prepared" {
			p.write("new.yaml", "by hand\n")
		}
	}
	_, err := p.h.Save(t.Context(), p.request(p.doc("new.yaml", "", "ours\n")))
	var conflict *history.Conflict
	if !errors.As(err, &conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	p.has("new.yaml", "by hand\n")
	p.tidy()
}

func TestLinksOwnerAndModeAreKept(t *testing.T) {
	p := newPlace(t)
	p.write("real.txt", "1")
	if err := os.Symlink("real.txt", p.file("a.yaml")); err != nil {
		t.Skip(err)
	}
	p.write("hard.yaml", "1")
	if err := os.Link(p.file("hard.yaml"), p.file("other")); err != nil {
		t.Skip(err)
	}
	p.write("c.yaml", "1")
	if os.Geteuid() == 0 {
		if err := os.Chown(p.file("c.yaml"), 1234, 1235); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(p.file("c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.save(p.doc("a.yaml", "1", "2"), p.doc("hard.yaml", "1", "two"), p.doc("c.yaml", "1", "2"))
	if target, err := os.Readlink(p.file("a.yaml")); err != nil || target != "real.txt" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	p.has("real.txt", "2")
	p.has("other", "two")
	after, err := os.Stat(p.file("c.yaml"))
	if err != nil || after.Mode() != before.Mode() || fmt.Sprint(ownerOf(after)) != fmt.Sprint(ownerOf(before)) {
		t.Errorf("mode and owner are %v %v, were %v %v", after.Mode(), ownerOf(after), before.Mode(), ownerOf(before))
	}
	p.tidy()
}

func TestADocumentInALockedFolderIsReadOnly(t *testing.T) {
	p := newPlace(t)
	name := filepath.Join(p.docs, "gone", "a.yaml")
	if err := history.Writable(name); err == nil {
		t.Error("a document in no folder is writable")
	}
	_, err := p.h.Save(t.Context(), p.request(history.Document{Name: name, Data: []byte("x")}))
	var readOnly *history.ReadOnly
	if !errors.As(err, &readOnly) || readOnly.Name != name || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("got %v, want *ReadOnly", err)
	}
	p.write("a.yaml", "1")
	if err := history.Writable(p.file("a.yaml")); err != nil {
		t.Errorf("Writable = %v", err)
	}
}

func TestConfirmAndRollBack(t *testing.T) {
	p := newPlace(t)
	p.write("a.yaml", "1")
	p.save(p.doc("a.yaml", "1", "1"))
	q := p.request(p.doc("a.yaml", "1", "2"))
	q.Within = time.Minute
	r, err := p.h.Save(t.Context(), q)
	if err != nil || r.State != history.Applied {
		t.Fatalf("got %+v, %v", r, err)
	}
	p.open()
	pending, ok, err := p.h.Pending(t.Context())
	if err != nil || !ok || pending.Revision != 2 || pending.Before != 1 || !pending.Until.Equal(q.When.Add(time.Minute)) {
		t.Fatalf("pending is %+v, %v, %v", pending, ok, err)
	}
	if newest, ok := p.h.NewestConfirmed(); !ok || newest.Number != 1 {
		t.Errorf("the newest confirmed revision is %+v", newest)
	}
	back, err := p.h.Documents(t.Context(), pending.Before)
	if err != nil {
		t.Fatal(err)
	}
	back[0].Was = history.DigestOf([]byte("2"))
	q = p.request(back...)
	q.RollsBack = 2
	if r, err = p.h.Save(t.Context(), q); err != nil || r.Number != 3 || r.State != history.Confirmed {
		t.Fatalf("going back: %+v, %v", r, err)
	}
	p.has("a.yaml", "1")
	p.open()
	if r, err := p.h.Get(2); err != nil || r.State != history.RolledBack {
		t.Errorf("revision 2 is %+v, %v", r, err)
	}
	if _, ok, err := p.h.Pending(t.Context()); ok || err != nil {
		t.Errorf("something waits still: %v", err)
	}
	q = p.request(p.doc("a.yaml", "1", "4"))
	q.Within = time.Minute
	if _, err = p.h.Save(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if err := p.h.Confirm(t.Context(), 4, store.Record{Stream: store.StreamAudit, Data: []byte("confirmed")}); err != nil {
		t.Fatal(err)
	}
	p.open()
	if r, ok := p.h.NewestConfirmed(); !ok || r.Number != 4 {
		t.Errorf("the newest confirmed revision is %+v", r)
	}
	if _, ok, _ := p.h.Pending(t.Context()); ok {
		t.Error("a confirmed revision waits still")
	}
	if err := p.h.Confirm(t.Context(), 99); !errors.Is(err, history.ErrUnknown) {
		t.Errorf("Confirm(99) = %v", err)
	}
	numbers := ""
	for _, r := range p.h.List(4, 2) {
		numbers += r.Name() + " "
	}
	if numbers != "00000003 00000002 " {
		t.Errorf("List(4, 2) = %s", numbers)
	}
}

func TestRevisionsAreBounded(t *testing.T) {
	p := newPlace(t)
	for i := 1; i <= history.MaxRevisions+20; i++ {
		text := fmt.Sprint(i)
		q := p.request(p.doc("a.yaml", text, text))
		q.Unconfirmed = i > 15
		if _, err := p.h.Save(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	p.open()
	list := p.h.List(0, 1000)
	if len(list) != history.MaxRevisions {
		t.Errorf("%d revisions are kept, want %d", len(list), history.MaxRevisions)
	}
	for i := 6; i <= 15; i++ {
		if _, err := p.h.Documents(t.Context(), i); err != nil {
			t.Errorf("one of the last confirmed revisions is gone: %v", err)
		}
	}
	if _, err := p.h.Get(5); !errors.Is(err, history.ErrUnknown) {
		t.Errorf("revision 5 is kept: %v", err)
	}
	blobs, err := filepath.Glob(filepath.Join(p.dir, "blobs", "*"))
	if err != nil || len(blobs) != history.MaxRevisions {
		t.Errorf("%d documents are kept, want %d", len(blobs), history.MaxRevisions)
	}
}

func TestContentIsKeptOnceAndInParts(t *testing.T) {
	p := newPlace(t)
	random := make([]byte, 3<<20)
	state := uint64(1)
	for i := range random {
		state = state*6364136223846793005 + 1442695040888963407
		random[i] = byte(state >> 56)
	}
	name := p.file("a.yaml")
	for i := range 4 {
		data := random
		if i%2 == 1 {
			data = []byte("small")
		}
		p.save(history.Document{Name: name, Was: history.DigestOf(data), Data: data})
	}
	docs, err := p.h.Documents(t.Context(), 3)
	if err != nil || !bytes.Equal(docs[0].Data, random) {
		t.Errorf("a large document comes back with an error: %v", err)
	}
	blobs, err := filepath.Glob(filepath.Join(p.dir, "blobs", "*"))
	if err != nil || len(blobs) != 5 {
		t.Errorf("%d parts are kept, want 4 of one and 1 of the other", len(blobs))
	}
}

func TestRevisionsOfVersion1AreTakenOver(t *testing.T) {
	p := newPlace(t)
	p.store.Close()
	for i := 3; i <= 5; i++ {
		if err := os.WriteFile(filepath.Join(p.dir, "revisions", fmt.Sprintf("%08d.yaml", i)), fmt.Appendf(nil, "old %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.store = nil
	p.open()
	for i := 3; i <= 5; i++ {
		docs, err := p.h.Documents(t.Context(), i)
		if err != nil || len(docs) != 1 || string(docs[0].Data) != fmt.Sprintf("old %d", i) || docs[0].Name != "/etc/headgate/headgate.yaml" {
			t.Errorf("revision %d is %v, %v", i, docs, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "revisions", "*.yaml")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if r := p.save(p.doc("a.yaml", "new", "new")); r.Number != 6 {
		t.Errorf("the next revision is %d, want 6", r.Number)
	}
}

// TestContentsComeWithTheirCommit holds that a document that fits is kept by the commit
// of its revision, also where two say the same and where it was packed before, and can be
// read back.
func TestContentsComeWithTheirCommit(t *testing.T) {
	p := newPlace(t)
	save := func(text string, packed bool) history.Revision {
		t.Helper()
		q := history.Request{When: time.Now(), Via: "api"}
		for _, name := range []string{p.file("a.yaml"), p.file("b.yaml")} {
			was, err := os.ReadFile(name)
			digest := history.DigestOf(was)
			if err != nil {
				digest = history.Absent
			}
			d := history.Document{Name: name, Was: digest, Data: []byte(text)}
			if packed {
				d.Packed = history.Pack(d.Data)
			}
			q.Documents = append(q.Documents, d)
		}
		r, err := p.h.Save(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	save("one", false)
	before, err := p.store.Get(t.Context(), store.KeyHead)
	if err != nil {
		t.Fatal(err)
	}
	r := save("two", true)
	after, err := p.store.Get(t.Context(), store.KeyHead)
	if err != nil || after.Revision != before.Revision+1 {
		t.Errorf("a save of what fits takes %d commits (%v), want one", after.Revision-before.Revision, err)
	}
	p.open()
	docs, err := p.h.Documents(t.Context(), r.Number)
	if err != nil || len(docs) != 2 || string(docs[0].Data) != "two" || string(docs[1].Data) != "two" {
		t.Errorf("read back: %v, %v", docs, err)
	}
}
