package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stopAll stops all machines.
func (m *machines) stopAll() {
	for _, one := range m.all {
		one.up.Store(false)
		one.stop()
	}
}

// startWith starts a machine again, with a database unless its address is empty.
func (one *machine) startWith(url string) {
	one.t.Helper()
	one.flags = nil
	if url != "" {
		one.flags = []string{"--store", url, "--node", one.name}
	}
	one.restart()
	one.up.Store(true)
}

// TestDatabaseIsLost loses the database of three machines: their state is moved to a new one
// from the copy of a machine, and one of them continues alone.
func TestDatabaseIsLost(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	a, b, c := m.all[0], m.all[1], m.all[2]
	m.change(a, 200)
	m.serveAll(m.acked)
	m.db.stop() // first: machines that stop write what they have observed
	m.stopAll()

	for _, one := range m.all {
		m.fails(2, "start headgate with --store", "run", "--config", one.file, "--state", one.state())
	}
	m.fails(1, "start headgate and make the change there", "token", "create", "ci", "--role", "viewer", "--state", a.state())
	at := free(t)
	second := postgres(t, at)
	url := "postgres://tester@" + at + "/postgres?sslmode=disable"
	m.fails(1, "add --from-copy", "store", "move", "--state", a.state(), "--store", url)
	m.fails(2, "store adopt --store", "run", "--config", a.file, "--state", a.state(), "--store", url, "--node", "a")
	m.fails(1, "the database is empty", "store", "adopt", "--state", b.state(), "--store", url)
	if out := m.command(0, "store", "move", "--from-copy", "--state", a.state(), "--store", url); !strings.Contains(out, "of revision ") {
		t.Errorf("store move: %s", out)
	}
	if out := m.command(0, "store", "adopt", "--state", b.state(), "--store", url); !strings.Contains(out, "when headgate starts") {
		t.Errorf("store adopt: %s", out)
	}
	m.command(0, "store", "leave", "--without-database", "--state", c.state())
	m.fails(1, "not a copy", "store", "leave", "--without-database", "--state", c.state())

	m.db, m.url = second, url
	a.startWith(url)
	b.startWith(url)
	c.startWith("")
	m.serveAll(m.acked)
	c.manager().must(200, "PATCH", "/proxies/hand", `{"description": "alone"}`, "*")
	m.all = m.all[:2]
	m.change(b, 200)
	m.serveAll(m.acked)

	m.leaveDatabase(b)
}

// leaveDatabase has a machine continue alone, with all that is in the database.
func (m *machines) leaveDatabase(b *machine) {
	m.t.Helper()
	b.up.Store(false)
	b.stop()
	m.command(0, "store", "leave", "--state", b.state(), "--store", m.url)
	b.startWith("")
	if n := b.number(); n != m.acked {
		m.t.Errorf("after it left, b serves n%d; want n%d", n, m.acked)
	}
	if out := b.machine("events"); !strings.Contains(out, "configuration was applied") {
		m.t.Errorf("b has not fetched the events: %s", out)
	}
}

// TestStoreKeyIsReplaced replaces the key of the database while two machines use it. They
// serve, the one without the new key refuses changes until it has it, and a machine with a
// wrong key does not start.
func TestStoreKeyIsReplaced(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	a, b := m.all[0], m.all[1]
	m.change(a, 200)
	m.serveAll(m.acked)
	if out := m.command(0, "store", "rekey", "--state", a.state(), "--store", m.url); !strings.Contains(out, "with a new key") {
		t.Errorf("store rekey: %s", out)
	}
	m.eventually("b has the wrong key", func() bool { return strings.Contains(b.stored(), "sealed with another key") })
	m.change(b, 503)
	if n := b.number(); n != m.acked {
		t.Errorf("without the new key, b serves n%d; want n%d", n, m.acked)
	}
	m.eventually("a has read the new key", func() bool { return strings.Contains(a.stored(), "following") })

	key, err := os.ReadFile(filepath.Join(a.state(), "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(a.state(), "store.key.old"))
	if err != nil || string(old) == string(key) {
		t.Fatalf("the key before is not kept: %v", err)
	}
	for _, one := range m.all[1:] {
		one.put(filepath.Join("state", "store.key"), string(key))
		m.eventually(one.name+" follows again", func() bool { return strings.Contains(one.stored(), "following") })
	}
	m.eventually("changes are accepted again", func() bool { return m.change(b, 0) == 200 })

	d := &machine{gate: prepare(t), name: "d"}
	if err := os.Mkdir(d.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	d.put(filepath.Join("state", "store.key"), string(old))
	d.put("headgate.yaml", "version: 1\nadmin: {address: \"\"}\n")
	m.fails(1, "sealed with another key", "run", "--config", d.file, "--state", d.state(), "--store", m.url, "--node", "d")
	m.finish()
}
