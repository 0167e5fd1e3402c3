package history_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/memory"
)

// machine is one of several that share a store: it has its own state directory and its own
// document.
type machine struct {
	t    *testing.T
	dir  string
	file string
	s    store.Store
	h    *history.History
}

func newMachine(t *testing.T, s store.Store, text string) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), file: filepath.Join(t.TempDir(), "headgate.yaml"), s: s}
	if err := os.WriteFile(m.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	return m
}

func (m *machine) start() {
	m.t.Helper()
	h, err := history.Open(m.t.Context(), history.Options{Store: m.s, Dir: m.dir, Config: m.file, Log: slog.New(slog.NewTextHandler(m.t.Output(), nil))})
	if err != nil {
		m.t.Fatal(err)
	}
	m.h = h
}

func (m *machine) request(was, now string) history.Request {
	return history.Request{When: time.Now(), Via: "api", Documents: []history.Document{{Name: m.file, Was: history.DigestOf([]byte(was)), Data: []byte(now)}}}
}

func (m *machine) has(want string) {
	m.t.Helper()
	if data, err := os.ReadFile(m.file); err != nil || string(data) != want {
		m.t.Errorf("the document is %q, %v; want %q", data, err, want)
	}
}

// A machine is killed after its change was committed. Others save before it starts again.
// Its change was acknowledged to nobody, but it is in the history: the file is not put back.
func TestAnIntentIsJudgedByItsRevisionAndNotByHead(t *testing.T) {
	s := memory.New()
	a := newMachine(t, s, "old")
	if _, err := a.h.Save(t.Context(), a.request("old", "old")); err != nil { // as it was found at the start
		t.Fatal(err)
	}
	if _, _, err := a.h.Start(t.Context(), a.request("old", "saved on a")); err != nil { // its end never comes
		t.Fatal(err)
	}
	b := newMachine(t, s, "saved on a")
	if _, err := b.h.Save(t.Context(), b.request("saved on a", "saved on b")); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.has("saved on a")
	if left, err := filepath.Glob(filepath.Join(a.dir, "intent.json")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The commit of a save was not made, and another machine has made the revision with its
// number: the documents are put back all the same.
func TestAnIntentIsNotTheRevisionOfAnotherMachine(t *testing.T) {
	s := memory.New()
	a := newMachine(t, s, "old")
	kept, err := os.ReadDir(a.dir)
	if err != nil || len(kept) > 0 {
		t.Fatal(kept, err)
	}
	// A is killed just before its commit: the document is in its place, and its intent is
	// on the disk. The state directory as it is then is kept by a copy.
	var intent []byte
	h, err := history.Open(t.Context(), history.Options{Store: s, Dir: a.dir, Config: a.file, Point: func(name string) {
		if name == "document placed" {
			intent, _ = os.ReadFile(filepath.Join(a.dir, "intent.json"))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := newMachine(t, s, "old")
	if _, err := b.h.Save(t.Context(), b.request("old", "saved on b")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Save(t.Context(), a.request("old", "refused on a")); err == nil {
		t.Fatal("a save from an old head was made")
	}
	a.has("old")
	if len(intent) == 0 {
		t.Fatal("no intent was seen")
	}
	for name, data := range map[string][]byte{a.file: []byte("refused on a"), filepath.Join(a.dir, "intent.json"): intent} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.start()
	a.has("old")
}
