package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreIsRestored restores a PostgreSQL from an older backup while three headgates use
// it. They go on with their copies and refuse changes until the operator decides whose state
// is right.
func TestStoreIsRestored(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	m.hasEvent("node.joined", "node b has joined")
	m.change(m.all[0], 200)
	old := m.acked
	m.restoreAfter(2)
	for _, one := range m.all {
		one.decide("adopt")
	}
	m.acked = old
	m.serveAll(old)
	m.change(m.all[1], 200)
	m.hasEvent("store.rewound", "node a has found that the shared store was set back")

	m.restoreAfter(2)
	m.all[0].decide("push")
	m.all[1].decide("adopt")
	m.all[2].decide("adopt")
	m.serveAll(m.acked)
	m.finish()
}

// restoreAfter makes changes, and then puts the database back to before them.
func (m *machines) restoreAfter(changes int) {
	m.t.Helper()
	backup := filepath.Join(m.db.dir, "backup")
	copied := func(from, to string) {
		m.t.Helper()
		if out, err := exec.Command("sh", "-c", `rm -rf "$2" && cp -a "$1" "$2"`, "sh", from, to).CombinedOutput(); err != nil {
			m.t.Fatalf("copy the database: %v\n%s", err, out)
		}
	}
	m.db.stop()
	copied(m.db.data(), backup)
	m.db.start()
	m.recovers()
	for range changes {
		m.change(m.all[1], 200)
	}
	m.db.stop()
	copied(backup, m.db.data())
	m.db.start()
	for _, one := range m.all {
		m.eventually(one.name+" sees that the store was set back", func() bool { return strings.Contains(one.stored(), "rewound since") })
		if n := one.number(); n != m.acked {
			m.t.Errorf("with a store that was set back, %s serves n%d; want n%d", one.name, n, m.acked)
		}
		m.change(one, 503)
	}
}

// stored returns what a machine shows of the store.
func (one *machine) stored() string {
	return one.machine("store", "status")
}

// machine runs a command of headgate at the headgate of the machine.
func (one *machine) machine(args ...string) string {
	cmd := exec.Command(os.Getenv(binaryFolder), append(args, "--state", filepath.Join(one.dir, "state"))...)
	out, _ := cmd.CombinedOutput() // the caller compares the text
	return string(out)
}

// decide decides whose state is right.
func (one *machine) decide(verb string) {
	one.t.Helper()
	if out := one.machine("store", verb, "--why", "a test"); !strings.Contains(out, "the store is followed at revision") {
		one.t.Fatalf("store %s on %s: %s", verb, one.name, out)
	}
}

// serveAll waits until all machines serve a change.
func (m *machines) serveAll(n int) {
	m.t.Helper()
	for _, one := range m.all {
		m.eventually(one.name+" serves it", func() bool { return one.number() == n })
	}
}

// hasEvent waits until an event is in the store.
func (m *machines) hasEvent(kind, text string) {
	m.t.Helper()
	m.eventually(text, func() bool { return strings.Contains(m.all[0].machine("events", "--types", kind), text) })
}
