package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func newEngine() sharedEngine { return sharedEngine{memory.New(), &atomic.Bool{}} }

// alone returns the engine as one machine reaches it, which can lose it alone.
func (e sharedEngine) alone() sharedEngine { return sharedEngine{e.Store, &atomic.Bool{}} }

func policy(name string, n int) string {
	return fmt.Sprintf("version: 1\npolicies:\n  %s:\n    request_body_limit: %dMiB\n", name, n)
}

// Machines have their documents in folders of different names. Documents that are added and
// removed on one of them are on all, also on those that start later.
func TestFoldersOfMachinesHaveTheSameDocuments(t *testing.T) {
	e := newEngine()
	all := map[string]string{"a.yaml": policy("a", 1), "b.yaml": policy("b", 1), "c.yaml": policy("c", 1)}
	a, b := newFolder(t, "a", e, all), newFolder(t, "b", e, nil)
	b.has(all)
	if a.c.ETag() != b.c.ETag() {
		t.Errorf("the same documents have the tags %s and %s", a.c.ETag(), b.c.ETag())
	}

	b.put("c.yaml", "") // by hand
	delete(all, "c.yaml")
	a.has(all)

	if _, err := a.c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List = slices.DeleteFunc(slices.Clone(docs.List), func(d config.Document) bool { return filepath.Base(d.Name) == "b.yaml" })
		return docs, nil
	}}); err != nil {
		t.Fatal(err)
	}
	delete(all, "b.yaml")
	b.has(all)

	b.stop()
	a.put("d.yaml", policy("d", 1))
	all["d.yaml"] = policy("d", 1)
	a.has(all)
	a.put("a.yaml", "")
	delete(all, "a.yaml")
	a.has(all)
	b.put("a.yaml", policy("a", 2)) // an edit of what was removed meanwhile is kept beside it
	b.start()
	b.has(all)
	if data, err := os.ReadFile(filepath.Join(b.file, "a.yaml.edited")); err != nil || string(data) != policy("a", 2) {
		t.Errorf("the edit of a removed document: %q, %v", data, err)
	}
	r := b.c.Revisions(0, 1)[0]
	if want := filepath.Join(b.file, "d.yaml"); len(r.Documents) != 1 || r.Documents[0].Name != want {
		t.Errorf("the newest revision has %v on b, want %s", r.Documents, want)
	}
}

// An edit by hand in the moment between the decision about the files and their writing is not
// lost: what was removed stays removed if nothing had to be written, and what was edited is
// kept.
func TestAnEditWhileTheFilesAreWrittenIsNotLost(t *testing.T) {
	e := newEngine()
	all := map[string]string{"a.yaml": policy("a", 1), "b.yaml": policy("b", 1), "c.yaml": policy("c", 1)}
	a, b := newFolder(t, "a", e, all), newFolder(t, "b", e, nil)
	b.has(all)
	decide := func() *adopted {
		t.Helper()
		head, _ := b.c.history.Head()
		ad, err := b.c.adoption(head)
		if err != nil || ad == nil {
			t.Fatalf("the decision about the files: %v, %v", ad, err)
		}
		return ad
	}
	b.c.mu.Lock() // the files are looked at again only afterwards
	ad := decide()
	b.put("c.yaml", "")
	err := ad.place()
	if _, serr := os.Stat(filepath.Join(b.file, "c.yaml")); err != nil || serr == nil {
		t.Errorf("a file that was removed by hand has come back: %v", err)
	}
	b.c.mu.Unlock()
	b.c.changed()
	delete(all, "c.yaml")
	a.has(all)

	b.c.mu.Lock()
	if _, err := a.c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(policy("a", 2))}}
		return docs, nil
	}}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; testhouse.Pause() {
		if err := b.c.history.Refresh(t.Context()); err != nil || time.Now().After(end) {
			t.Fatalf("b has not got the change: %v", err)
		}
		if head, _ := b.c.history.Head(); head.Number == 3 {
			break
		}
	}
	ad = decide()
	b.put("a.yaml", policy("a", 7))
	b.put("b.yaml", policy("b", 7)) // the change removes it
	err = ad.place()
	b.c.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]string{"a.yaml": policy("a", 7), "b.yaml": policy("b", 7)} {
		if data, err := os.ReadFile(filepath.Join(b.file, name+".edited")); err != nil || string(data) != n {
			t.Errorf("the edit of %s: %q, %v", name, data, err)
		}
	}
	b.c.changed()
	b.has(map[string]string{"a.yaml": policy("a", 2)})
}

// A revert on the machine with another folder writes there, and does not take the file for
// edited.
func TestARevertIsInTheFolderOfEachMachine(t *testing.T) {
	e := newEngine()
	before := map[string]string{"a.yaml": policy("a", 1)}
	a, b := newFolder(t, "a", e, before), newFolder(t, "b", e, nil)
	b.has(before)
	n := a.changeWithin(func(docs config.Documents) config.Documents {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(policy("a", 2))}}
		return docs
	})
	b.has(map[string]string{"a.yaml": policy("a", 2)})
	b.awaits(n)
	b.c.revert(n)
	a.has(before)
	b.has(before)
	a.awaits(0)
	for _, m := range []*member{a, b} {
		if r, err := m.c.history.Get(n); err != nil || r.State != history.RolledBack {
			t.Errorf("on %s the revision is %s, %v", m.name, r.State, err)
		}
	}
}

// changeWithin makes a change that waits to be confirmed, and returns its revision.
func (m *member) changeWithin(edit func(config.Documents) config.Documents) int {
	m.t.Helper()
	_, err := m.c.Change(Edit{Cause: Cause{Via: ViaAPI}, ConfirmWithin: MaxConfirm, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		return edit(docs), nil
	}})
	if err != nil {
		m.t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(m.c.Pending().Revision, &n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

// limitWithin is changeWithin for a machine with one file.
func (m *member) limitWithin(n int) int {
	m.t.Helper()
	return m.changeWithin(func(docs config.Documents) config.Documents {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(limitOf(n))}}
		return docs
	})
}

// awaits waits until a revision waits on a machine to be confirmed; 0 is none.
func (m *member) awaits(revision int) {
	m.t.Helper()
	testhouse.Eventually(m.t, fmt.Sprintf("%s waits for revision %d", m.name, revision), func() bool {
		p := m.c.Pending()
		return revision == 0 && p == nil || p != nil && p.Revision == fmt.Sprintf("%08d", revision)
	})
}

func TestAChangeIsConfirmedOnAnyMachine(t *testing.T) {
	e := newEngine()
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	b.serves(limitOf(1))
	n := a.limitWithin(2)
	b.serves(limitOf(2))
	b.awaits(n)
	until := b.c.Pending().Until

	b.stop()
	b.start() // continues the wait
	b.serves(limitOf(2))
	b.awaits(n)
	if again := b.c.Pending().Until; again.After(until.Add(time.Millisecond)) {
		t.Errorf("a restart prolongs the wait from %v to %v", until, again)
	}
	if err := b.edit(limitOf(3)); !errors.As(err, new(*ConfirmPending)) {
		t.Errorf("a change while another waits: %v", err)
	}
	if err := b.c.Confirm(Cause{Via: ViaAPI}); err != nil {
		t.Fatal(err)
	}
	a.awaits(0)
	a.c.revert(n) // its timer is late
	a.serves(limitOf(2))
	b.serves(limitOf(2))
}

// One machine confirms at the moment at which the wait of another ends: the first in the
// store wins.
func TestARevertThatComesAfterTheConfirmationIsNotMade(t *testing.T) {
	e := newEngine()
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	b.serves(limitOf(1))
	n := a.limitWithin(2)
	b.serves(limitOf(2))
	b.awaits(n)
	b.c.mu.Lock() // b does not see the confirmation yet
	p := *b.c.mu.pending
	if err := a.c.Confirm(Cause{Via: ViaAPI}); err != nil {
		t.Fatal(err)
	}
	_, err := b.c.revertLocked(p, nil)
	b.c.mu.Unlock()
	if !errors.Is(err, history.ErrElsewhere) {
		t.Errorf("a revert of what was confirmed: %v", err)
	}
	b.serves(limitOf(2))
	a.serves(limitOf(2))
}

// A machine without the store leaves the change when the wait has ended, and a
// confirmation that it did not see wins when the store is back.
func TestAMachineWithoutItsStoreLeavesAChange(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		t.Run(fmt.Sprint("confirmed ", confirmed), func(t *testing.T) {
			e := newEngine()
			mine := e.alone()
			a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", mine)
			b.serves(limitOf(1))
			n := a.limitWithin(2)
			b.serves(limitOf(2))
			b.awaits(n)
			before := b.c.Revisions(0, 2)[1].Name()

			mine.away.Store(true)
			b.c.revert(n)
			if s := b.c.Status(); s.State != "degraded" || s.Revision != before {
				t.Errorf("without the store, revision %s is %s; want %s, degraded", s.Revision, s.State, before)
			}
			if got := b.c.Plan().Config().Policies["p"].RequestBodyLimit; got.String() != "1MiB" {
				t.Errorf("without the store, the limit is %v", got)
			}
			if confirmed {
				if err := a.c.Confirm(Cause{Via: ViaAPI}); err != nil {
					t.Fatal(err)
				}
			}
			mine.away.Store(false)
			b.c.Reconsider()
			want := limitOf(1)
			if confirmed {
				want = limitOf(2)
			}
			a.serves(want)
			b.serves(want)
			b.awaits(0)
			testhouse.Eventually(t, "b is not degraded", func() bool { return b.c.Status().State == "serving" })
		})
	}
}

// A tool writes different files on two machines, again and again.
func TestFilesThatAreEditedInTurnAreRefused(t *testing.T) {
	e := newEngine()
	a := newMember(t, "a", limitOf(1), e)
	b := newMember(t, "b", "", e)
	b.serves(limitOf(1))
	b.write(limitOf(2))
	a.serves(limitOf(2))
	a.write(limitOf(1))
	var refused *RefusedState
	testhouse.Eventually(t, "the edit is refused", func() bool {
		refused = a.c.Status().Refused
		return refused != nil
	})
	if want := (&Flipping{[]string{"a", "b"}}).Error(); !slices.Contains(refused.Problems, want) {
		t.Errorf("refused with %q, want %q", refused.Problems, want)
	}
	b.serves(limitOf(2))
	if err := b.edit(limitOf(5)); err != nil { // a change by other means is not held up
		t.Fatal(err)
	}
	a.serves(limitOf(5))
	a.edited(limitOf(1))
}

// The clock of the machine that made a change is three hours behind: by the clock of another one
// the wait has ended before it began. Each counts from when it saw the change, and over a restart.
func TestAWaitIsCountedByEachMachine(t *testing.T) {
	e := newEngine()
	a := newMember(t, "a", limitOf(1), e)
	n := a.limitWithin(2)
	entry, err := e.Get(t.Context(), store.KeyConfirm)
	if err != nil {
		t.Fatal(err)
	}
	p := history.Pending{}
	if err := json.Unmarshal(entry.Value, &p); err != nil {
		t.Fatal(err)
	}
	p.Until = p.Until.Add(-3 * time.Hour)
	value, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.KeyConfirm, Value: value}}}); err != nil {
		t.Fatal(err)
	}
	b := newMember(t, "b", "", e)
	b.serves(limitOf(2))
	b.awaits(n)
	until := b.c.Pending().Until
	if left := time.Until(until); left < MaxConfirm-time.Minute || left > MaxConfirm {
		t.Fatalf("b waits for %v, want %v", left, MaxConfirm)
	}
	b.stop()
	b.start()
	b.awaits(n)
	if again := b.c.Pending().Until; again.Sub(until).Abs() > time.Second {
		t.Errorf("a restart moves the end of the wait from %v to %v", until, again)
	}
	a.serves(limitOf(2))
	b.stop() // another change can have the number, as after a restore
	other := fmt.Sprintf(`{"revision": %d, "intent": "of another", "until": "2026-01-01T00:00:00Z"}`, n)
	if err := os.WriteFile(filepath.Join(b.dir, "state", waitName), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.awaits(n)
	if left := time.Until(b.c.Pending().Until); left < MaxConfirm-time.Minute {
		t.Errorf("with the wait for another change, b waits for %v, want %v", left, MaxConfirm)
	}
}

// A machine leaves the others: what they have saved together is in its files, and an earlier revision
// of that time is applied to them.
func TestAMachineThatHasLeftTheOthersRollsBack(t *testing.T) {
	m := &member{t: t, name: "a", dir: t.TempDir(), leads: true}
	m.file = filepath.Join(m.dir, "headgate.yaml")
	m.write(limitOf(1))
	m.start()
	if err := m.edit(limitOf(2)); err != nil {
		t.Fatal(err)
	}
	m.stop()
	m.leads, m.single = false, true
	m.start()
	m.serves(limitOf(2))
	if all := m.c.Revisions(0, 10); len(all) != 2 {
		t.Errorf("the start has made a revision: %+v", all)
	}
	if _, err := m.c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(config.Documents, *config.Config) (config.Documents, error) {
		_, docs, err := m.c.Revision(1)
		return docs, err
	}}); err != nil {
		t.Fatal(err)
	}
	m.serves(limitOf(1))
	m.stop()
	m.write("version: 1\nnone: {}\n") // it falls back to what was confirmed
	m.start()
	if s := m.c.Status(); s.State != "degraded" {
		t.Errorf("with a broken file, the state is %s", s.State)
	}
}

// A machine that serves one file comes to others that have several: it cannot use them, and what it
// has in its file is not saved in their place, neither at its start nor when the file is edited.
func TestAMachineThatCannotUseTheDocumentsChangesNothing(t *testing.T) {
	e := newEngine()
	all := map[string]string{"a.yaml": policy("a", 1), "b.yaml": policy("b", 1)}
	a := newFolder(t, "a", e, all)
	b := newMember(t, "b", limitOf(1), e)
	degraded := func() {
		t.Helper()
		if s := b.c.Status(); s.State != "degraded" || s.Refused == nil {
			t.Errorf("b is %s, refused %v; want degraded with the reason", s.State, s.Refused)
		}
		a.has(all)
		if r := a.c.Revisions(0, 1)[0]; r.Node != "a" || len(r.Documents) != 2 {
			t.Errorf("the newest revision is of %s with %d documents", r.Node, len(r.Documents))
		}
	}
	degraded()
	b.write(limitOf(2))
	_ = b.c.Reload()
	degraded()
}
