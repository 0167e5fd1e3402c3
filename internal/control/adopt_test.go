package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/store/local"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// sharedEngine is a store in memory that several controls share, and that can be away.
type sharedEngine struct {
	*memory.Store
	away *atomic.Bool
}

func (e sharedEngine) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if e.away.Load() {
		return 0, store.ErrUnavailable
	}
	return e.Store.Commit(ctx, c)
}

func (e sharedEngine) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	if e.away.Load() {
		return nil, store.Position{}, store.ErrUnavailable
	}
	return e.Store.Snapshot(ctx, prefix)
}

func (e sharedEngine) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	if e.away.Load() {
		return func(yield func(store.Batch, error) bool) { yield(store.Batch{}, store.ErrUnavailable) }
	}
	return e.Store.Watch(ctx, prefix, after)
}

// Close leaves the engine to the other machines.
func (sharedEngine) Close() error { return nil }

// member is one of several machines that share a store.
type member struct {
	t         *testing.T
	name, dir string
	file      string
	engine    sharedEngine
	created   bool // the file was created by the start
	single    bool // it shares nothing
	leads     bool // it is the first machine of a pair: its state directory is what is shared
	aside     asides
	observe   func(*Event) // called with the events of changes; nil is nothing
	c         *Control
	stop      func()
}

// asides are the edits that a machine reports to have kept.
type asides struct {
	unwatched
	mu   sync.Mutex
	kept []string
}

func (a *asides) Node(e NodeEvent) {
	if e.Kind == EditSetAside {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.kept = append(a.kept, e.Kept)
	}
}

func newMember(t *testing.T, name, text string, e sharedEngine) *member {
	t.Helper()
	m := &member{t: t, name: name, dir: t.TempDir(), engine: e}
	m.file = filepath.Join(m.dir, "headgate.yaml")
	if text != "" {
		m.write(text)
	}
	m.start()
	return m
}

// newFolder returns a machine that serves a folder of its own with documents.
func newFolder(t *testing.T, name string, e sharedEngine, docs map[string]string) *member {
	t.Helper()
	m := &member{t: t, name: name, dir: t.TempDir(), engine: e}
	m.file = filepath.Join(m.dir, "conf-"+name)
	if err := os.Mkdir(m.file, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range docs {
		m.put(name, text)
	}
	m.start()
	return m
}

// put writes a document of the folder, or removes it if there is no text.
func (m *member) put(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.file, name)
	if text == "" {
		if err := os.Remove(path); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	// In one step: a document that is half written is not the edit.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		m.t.Fatal(err)
	}
}

// has waits until a machine serves its folder and that has these documents.
func (m *member) has(want map[string]string) {
	m.t.Helper()
	have := map[string]string{}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); testhouse.Pause() {
		docs, tag, err := m.c.Documents()
		if err != nil || m.c.ETag() != tag {
			continue
		}
		clear(have)
		for _, d := range docs.List {
			have[filepath.Base(d.Name)] = string(d.Data)
		}
		if maps.Equal(have, want) {
			return
		}
	}
	m.t.Fatalf("%s has %q, want %q", m.name, have, want)
}

func (m *member) start() {
	m.t.Helper()
	ready := make(chan struct{})
	log := slog.New(slog.NewTextHandler(m.t.Output(), nil)).With("machine", m.name)
	var control atomic.Pointer[Control]
	o := Options{Log: log, ConfigFile: m.file, Created: m.created, StateDir: filepath.Join(m.dir, "state"), Node: m.name, Watcher: &m.aside, Ready: func() { close(ready) }}
	switch {
	case m.leads:
		o.Share = func(files *local.Store) (store.Store, error) { return files, nil }
	case !m.single:
		o.Share = func(files *local.Store) (store.Store, error) {
			return cluster.Open(m.t.Context(), cluster.Options{Copy: files, Engine: m.engine, Name: "shared", Log: log, Changed: func(s cluster.State, _ error) {
				if c := control.Load(); c != nil && s == cluster.Following {
					go c.Reconsider()
				}
			}})
		}
	}
	c, err := New(o)
	if err != nil {
		m.t.Fatal(err)
	}
	control.Store(c)
	if m.observe != nil {
		c.Observe(m.observe)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case <-ready:
	case err := <-done:
		m.t.Fatal("ended at the start: ", err)
	}
	stopped := false
	m.c, m.stop = c, func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	m.t.Cleanup(m.stop)
}

func (m *member) write(text string) {
	m.t.Helper()
	if err := os.WriteFile(m.file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// limitOf returns a configuration that is told from others by a limit.
func limitOf(n int) string {
	return fmt.Sprintf("version: 1\npolicies:\n  p:\n    request_body_limit: %dMiB\n", n)
}

// serves waits until a machine serves a configuration and has it in its file.
func (m *member) serves(want string) {
	m.t.Helper()
	have := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); testhouse.Pause() {
		docs, tag, err := m.c.Documents()
		if err != nil || len(docs.List) != 1 {
			continue // it is not there yet
		}
		if have = string(docs.List[0].Data); have == want && m.c.ETag() == tag {
			return
		}
	}
	m.t.Fatalf("%s has %q, want %q", m.name, have, want)
}

// edit makes an edit as the API does.
func (m *member) edit(text string) error { return m.editBy(ViaAPI, text) }

func (m *member) editBy(via Via, text string) error {
	_, err := m.c.Change(Edit{Cause: Cause{Via: via, Who: "anna"}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List = []config.Document{{Name: docs.List[0].Name, Data: []byte(text)}}
		return docs, nil
	}})
	return err
}

func (m *member) edited(want string) {
	m.t.Helper()
	data, err := os.ReadFile(m.file + ".edited")
	if want == "" && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil || string(data) != want {
		m.t.Errorf("%s has kept the edit %q, %v; want %q", m.name, data, err, want)
	}
	m.aside.mu.Lock()
	defer m.aside.mu.Unlock()
	if !slices.Contains(m.aside.kept, m.file+".edited") {
		m.t.Errorf("%s has no event about the edit that it kept: %v", m.name, m.aside.kept)
	}
}

func TestMachinesServeOneConfiguration(t *testing.T) {
	e := sharedEngine{memory.New(), &atomic.Bool{}}
	a := newMember(t, "a", limitOf(1), e)
	b := newMember(t, "b", "", e)
	b.serves(limitOf(1))

	if err := a.edit(limitOf(2)); err != nil {
		t.Fatal(err)
	}
	b.serves(limitOf(2))
	if err := b.edit(limitOf(3)); err != nil {
		t.Fatal(err)
	}
	a.serves(limitOf(3))

	b.write(limitOf(4)) // an edit by hand is one as any other
	a.serves(limitOf(4))
	b.edited("")

	b.stop() // what others save meanwhile wins over the files that it wrote
	if err := a.edit(limitOf(5)); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.serves(limitOf(5))
	b.edited("")

	b.stop() // and over an edit, which is kept beside them
	if err := a.edit(limitOf(6)); err != nil {
		t.Fatal(err)
	}
	b.write(limitOf(7))
	b.start()
	b.serves(limitOf(6))
	b.edited(limitOf(7))
	a.serves(limitOf(6))

	b.stop() // an edit while nobody saved counts
	b.write(limitOf(8))
	b.start()
	a.serves(limitOf(8))
}

// TestACreatedFileIsNoEdit starts a machine without a configuration, which gets an empty one: that
// of the others replaces it, and nothing is kept of it. An edit that is there already is kept.
func TestACreatedFileIsNoEdit(t *testing.T) {
	e := sharedEngine{memory.New(), &atomic.Bool{}}
	newMember(t, "a", limitOf(1), e)
	for name, created := range map[string]bool{"b": true, "c": false} {
		m := &member{t: t, name: name, dir: t.TempDir(), engine: e, created: created}
		m.file = filepath.Join(m.dir, "headgate.yaml")
		m.write(limitOf(2))
		m.start()
		m.serves(limitOf(1))
		if created {
			m.edited("")
		} else {
			m.edited(limitOf(2))
		}
	}
}

func TestMachinesWithoutTheirStoreServeAndRefuse(t *testing.T) {
	e := sharedEngine{memory.New(), &atomic.Bool{}}
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	b.serves(limitOf(1))
	e.away.Store(true)
	if err := a.edit(limitOf(2)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change without the store: %v", err)
	}
	a.serves(limitOf(1))
	b.stop()
	b.start() // without the store
	b.serves(limitOf(1))
	b.stop()
	e.away.Store(false)
	if err := a.edit(limitOf(3)); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.serves(limitOf(3))
}

// The files of a machine are edited while it is stopped to become the first of several: that is
// an edit as any other, and not one that another machine has overtaken.
func TestAnEditBeforeTheFirstSharedStartIsSaved(t *testing.T) {
	m := &member{t: t, name: "a", dir: t.TempDir(), single: true}
	m.file = filepath.Join(m.dir, "headgate.yaml")
	m.write(limitOf(1))
	m.start()
	m.serves(limitOf(1))
	m.stop()
	m.write(limitOf(2))
	m.single, m.leads = false, true
	m.start()
	m.serves(limitOf(2))
	m.edited("")
}

// After a restore, or on a leader that yielded, a revision can have the number of the one that this
// machine wrote, and other content. An edit by hand of the files is no edit of that one.
func TestAnEditOfAnotherRevisionWithTheSameNumberIsKeptAside(t *testing.T) {
	e := newEngine()
	a := newMember(t, "a", limitOf(1), e)
	b := newMember(t, "b", "", e)
	b.serves(limitOf(1))
	b.stop()
	wrote := b.c.readApplied()
	for name := range wrote.Documents {
		wrote.Documents[name] = history.DigestOf([]byte(limitOf(5)))
	}
	data, err := json.Marshal(wrote)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.c.appliedFile(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(limitOf(7))
	b.start()
	b.serves(limitOf(1))
	b.edited(limitOf(7))
	a.serves(limitOf(1))
}
