package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// flaky is a store of which some calls fail.
type flaky struct {
	store.Store
	before, after, reads int // how many calls go well until one fails; below 0 all do
}

var errDisk = fmt.Errorf("%w: input/output error", store.ErrUnavailable)

// due counts down to the call that fails.
func due(n *int) bool {
	*n--
	return *n == -1
}

// Commit fails before it has done anything, or when all is done.
func (f *flaky) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if due(&f.before) {
		return 0, errDisk
	}
	at, err := f.Store.Commit(ctx, c)
	if err == nil && due(&f.after) {
		return 0, errDisk
	}
	return at, err
}

// Get fails.
func (f *flaky) Get(ctx context.Context, key string) (store.Entry, error) {
	if due(&f.reads) {
		return store.Entry{}, errDisk
	}
	return f.Store.Get(ctx, key)
}

// calm makes all calls go well.
func (f *flaky) calm() { f.before, f.after, f.reads = -1, -1, -1 }

// life is a history between operators, editors by hand, a store that fails, and crashes.
type life struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	docs  string
	store *flaky
	h     *history.History
	point func(string)

	// What is expected.
	is        map[string]string // documents that are there, by name
	revisions []map[string]string
	audit     int
	pending   int
	unsure    bool // a save was refused, and the store has it
	serial    int
	told      []string
	wrong     []string
}

func (l *life) fault(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

func (l *life) open() {
	l.store.calm()
	h, err := history.Open(context.Background(), history.Options{Store: l.store, Dir: l.dir, Log: slog.New(slog.DiscardHandler), Point: func(name string) {
		if l.point != nil {
			l.point(name)
		}
	}})
	if err != nil {
		l.fault("open: %v", err)
		return
	}
	l.h = h
}

// names are those of the documents.
var names = []string{"a.yaml", "b.yaml", "c.yaml"}

// crash is what a save that is killed panics with.
type crash struct{}

// text returns what nobody has written before.
func (l *life) text(who string) string {
	l.serial++
	return fmt.Sprintf("%s %d\n", who, l.serial) + strings.Repeat("x", l.r.IntN(2000))
}

// edit writes a document by hand, as editors do.
func (l *life) edit(name string) {
	text, path := l.text("hand"), filepath.Join(l.docs, name)
	var err error
	if l.r.IntN(2) == 0 {
		err = os.WriteFile(path+"~", []byte(text), 0o600)
		if err == nil {
			err = os.Rename(path+"~", path)
		}
	} else {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		l.fault("edit by hand: %v", err)
	}
	l.is[name] = text
}

// save saves other documents. Meanwhile somebody may write one by hand, the store may
// fail, or the process may be killed.
func (l *life) save() string {
	was, next := maps.Clone(l.is), maps.Clone(l.is)
	for _, name := range names {
		switch k := l.r.IntN(6); {
		case k < 3:
			next[name] = l.text("saved")
		case k == 3:
			delete(next, name)
		}
	}
	if len(next) == 0 {
		next["a.yaml"] = l.text("saved")
	}
	q := history.Request{When: time.Unix(1e9, 0), Via: "api", Records: []store.Record{{Stream: store.StreamAudit, Data: []byte("saved")}}}
	for _, name := range names {
		d := history.Document{Name: filepath.Join(l.docs, name)}
		if text, ok := was[name]; ok {
			d.Was = history.DigestOf([]byte(text))
		}
		if text, ok := next[name]; ok {
			d.Data = []byte(text)
		}
		if d.Was != history.Absent || d.Data != nil {
			q.Documents = append(q.Documents, d)
		}
	}
	what := "save"
	if l.pending == 0 && l.r.IntN(4) == 0 {
		q.Within = time.Hour
		what += " to be confirmed"
	} else if l.pending != 0 {
		q.RollsBack = l.pending
		what += " roll back"
	}
	edited := map[string]string{}
	steps, at := 0, -1
	var points []string
	kind := l.r.IntN(6)
	if kind < 3 {
		at = l.r.IntN(14)
	}
	written := false
	l.point = func(name string) {
		points = append(points, name)
		if name == "saved" {
			written = true
		}
		if steps++; steps-1 != at {
			return
		}
		switch kind {
		case 0, 1:
			what += ", killed at " + name
			panic(crash{})
		default:
			one := names[l.r.IntN(len(names))]
			what += fmt.Sprintf(", %s by hand at %s", one, name)
			l.edit(one)
			edited[one] = l.is[one]
		}
	}
	switch kind {
	case 3:
		l.store.before = l.r.IntN(5)
		what += fmt.Sprintf(", commit %d fails", l.store.before)
	case 4:
		l.store.after = l.r.IntN(5)
		what += fmt.Sprintf(", the answer of commit %d is lost", l.store.after)
		if l.r.IntN(2) == 0 {
			l.store.reads = l.r.IntN(4)
			what += fmt.Sprintf(" and read %d fails", l.store.reads)
		}
	}
	killed := false
	r, err := func() (r history.Revision, err error) {
		defer func() {
			if v := recover(); v != nil {
				if v != (crash{}) {
					panic(v)
				}
				killed = true
			}
		}()
		return l.h.Save(context.Background(), q)
	}()
	l.point = nil
	l.store.calm()
	if killed {
		l.open()
		if l.h == nil {
			return what
		}
	}
	// What the store says decides.
	_, committed := l.newest()
	l.unsure = committed && err != nil && !killed
	switch {
	case err == nil && !killed && !committed:
		l.fault("a save that was acknowledged is not kept")
	case killed && written && !committed:
		l.fault("a commit is lost")
	}
	if committed {
		l.revisions = append(l.revisions, maps.Clone(next))
		l.audit++
		l.pending = 0
		if q.Within > 0 && !l.unsure {
			l.pending = len(l.revisions)
		}
		if err == nil && !killed && r.Number != len(l.revisions) {
			l.fault("it is revision %d, want %d", r.Number, len(l.revisions))
		}
	}
	l.is = was
	if committed && (err == nil || killed) {
		l.is = next
	}
	maps.Copy(l.is, edited)
	if killed {
		return what
	}
	if err != nil {
		return what + ": " + err.Error()
	}
	return what + " ok"
}

// newest returns the number of the newest revision that the store has, and whether that is
// one more than expected.
func (l *life) newest() (int, bool) {
	entries, _, err := l.store.Snapshot(context.Background(), store.PrefixRevision)
	if err != nil {
		l.fault("%v", err)
	}
	return len(entries), len(entries) == len(l.revisions)+1
}

// checkDocuments checks the documents and what is remembered.
func (l *life) checkDocuments() {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(l.docs, name))
		want, ok := l.is[name]
		if kept, kerr := os.ReadFile(filepath.Join(l.docs, name+".edited")); kerr == nil && string(kept) == want {
			os.Remove(filepath.Join(l.docs, name+".edited"))
			if err == nil {
				l.is[name] = string(data)
			} else {
				delete(l.is, name)
			}
			continue // it was written while it was exchanged: kept beside it
		}
		if ok != (err == nil) || string(data) != want {
			l.fault("%s says %.12q, want %.12q", name, data, want)
		}
	}
	entries, _ := os.ReadDir(l.docs)
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			l.fault("%s is left", e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(l.dir, "intent.json")); err == nil {
		l.fault("the intent is left")
	}
	if l.unsure {
		return // the next save makes sure
	}
	list := l.h.List(0, 1000)
	if len(list) != len(l.revisions) {
		l.fault("%d revisions, want %d", len(list), len(l.revisions))
		return
	}
	for i, want := range l.revisions {
		docs, err := l.h.Documents(context.Background(), i+1)
		if err != nil || len(docs) != len(want) {
			l.fault("revision %d: %d documents, %v", i+1, len(docs), err)
		}
		for _, d := range docs {
			if want[filepath.Base(d.Name)] != string(d.Data) {
				l.fault("revision %d says something else in %s", i+1, d.Name)
			}
		}
	}
	p, ok, err := l.h.Pending(context.Background())
	if err != nil || ok != (l.pending != 0) || ok && p.Revision != l.pending {
		l.fault("%+v waits, %v; want %d", p, err, l.pending)
	}
	page, err := l.store.Page(context.Background(), store.StreamAudit, 0, store.MaxPage)
	if err != nil || len(page) != min(l.audit, store.MaxPage) {
		l.fault("%d records in the audit, want %d", len(page), l.audit)
	}
}

// TestRandomLives lets saves meet edits by hand, a store that fails or whose answer is
// lost, and crashes, at any step. Documents and revisions go together, and what a person
// wrote is never lost.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 12, func(t *testing.T, seed uint64) {
		l := &life{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), docs: t.TempDir(), store: &flaky{Store: memory.New()}, is: map[string]string{}}
		l.open()
		for i := 0; i < 20 && len(l.wrong) == 0; i++ {
			l.told = append(l.told, fmt.Sprintf("%d %s", i+1, l.move()))
			l.checkDocuments()
		}
		l.store.Close()
		if len(l.wrong) > 0 {
			t.Fatalf("%s\n%s", strings.Join(l.told, "\n"), strings.Join(l.wrong, "\n"))
		}
	})
}

func (l *life) move() string {
	switch k := l.r.IntN(10); {
	case k < 6:
		return l.save()
	case k < 8:
		name := names[l.r.IntN(len(names))]
		l.edit(name)
		return name + " by hand"
	case k < 9 && l.pending != 0:
		if err := l.h.Confirm(context.Background(), l.pending); err != nil {
			l.fault("confirm: %v", err)
		}
		l.pending = 0
		return "confirm"
	case l.unsure:
		return "nothing" // a start finds a revision that was never served, and takes it as such
	}
	l.open()
	return "restart"
}

// A save of which nobody can tell whether it was kept is refused, and those after it are
// not.
func TestASaveWhoseAnswerIsLostHoldsNothingUp(t *testing.T) {
	l := &life{t: t, r: rand.New(rand.NewPCG(1, 0)), dir: t.TempDir(), docs: t.TempDir(), store: &flaky{Store: memory.New()}}
	defer l.store.Close()
	l.open()
	save := func(was, now string) error {
		d := history.Document{Name: filepath.Join(l.docs, "a.yaml"), Data: []byte(now)}
		if was != "" {
			d.Was = history.DigestOf([]byte(was))
		}
		_, err := l.h.Save(t.Context(), history.Request{Documents: []history.Document{d}, When: time.Unix(1e9, 0), Via: "api", Within: time.Hour})
		return err
	}
	if err := save("", "one"); err != nil {
		t.Fatal(err)
	}
	l.store.after, l.store.reads = 0, 0
	if err := save("one", "two"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want that the store is unavailable", err)
	}
	if l.store.after >= 0 || l.store.reads >= 0 {
		t.Fatal("nothing has failed")
	}
	if n, _ := l.newest(); n != 2 {
		t.Fatalf("the store has %d revisions", n)
	}
	if err := save("one", "three"); err != nil {
		t.Fatal(err)
	}
	list := l.h.List(0, 10)
	if len(list) != 3 || list[1].State != history.RolledBack || list[0].State != history.Applied {
		t.Errorf("the revisions are %+v", list)
	}
}
