package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fails runs headgate, which must fail and print a text.
func (m *machines) fails(code int, text string, args ...string) {
	m.t.Helper()
	if out := m.command(code, args...); !strings.Contains(out, text) {
		m.t.Errorf("headgate %v: got %q, want %q", args, out, text)
	}
}

// TestPairRefusesCommandsOfASingleMachine runs the commands that a machine of a pair must
// refuse: those that replace the store.
func TestPairRefusesCommandsOfASingleMachine(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	if backups, _ := filepath.Glob(filepath.Join(p.b.state(), "before-join-*")); len(backups) > 0 {
		t.Errorf("a machine without a state set it aside: %v", backups)
	}
	for _, one := range []*twin{p.a, p.b} {
		p.fails(1, "shares no database", "store", "adopt", "--state", one.state())
		p.fails(1, "shares no database", "store", "push", "--state", one.state())
		p.fails(1, "shares no database", "store", "migrate", "--state", one.state())
		if out := p.command(0, "store", "status", "--state", one.state()); !strings.Contains(out, "headgate status shows the other machine") {
			t.Errorf("store status: %s", out)
		}
		p.fails(1, "in use", "node", "init", "--state", one.state(), "--name", one.name, "--address", "https://127.0.0.1:1")
	}
	p.fails(1, "a headgate uses", "node", "join", "--state", p.b.state(), "--token-file", filepath.Join(p.b.dir, "token"), "--address", "https://127.0.0.1:1")
	for _, verb := range []string{"drain", "undrain", "remove"} {
		p.fails(1, `"headgate node list" lists them`, "node", verb, "web9", "--state", p.b.state())
	}
	p.fails(1, "make the change at https://"+p.a.cable.address, "node", "drain", "a", "--state", p.b.state())
	p.fails(1, "make the change at https://"+p.a.cable.address, "node", "invite", "--state", p.b.state())
	p.fails(1, "make the change at https://"+p.a.cable.address, "node", "revoke", "a", "--state", p.b.state())

	p.a.crash()
	p.b.crash()
	database := "postgres://tester@127.0.0.1:1/x?sslmode=disable"
	for _, one := range []*twin{p.a, p.b} {
		for _, args := range [][]string{{"--store", database}, {"--undo"}} {
			p.fails(1, "one of a pair", append([]string{"store", "move", "--state", one.state()}, args...)...)
		}
		if _, err := os.Stat(filepath.Join(one.state(), "store.key")); err == nil {
			t.Errorf("%s has a key of a shared store", one.name)
		}
		p.fails(2, "cannot have a database, too", "run", "--config", one.file, "--state", one.state(), "--store", database)
	}
	p.fails(1, "in a group already, as a", "node", "init", "--state", p.a.state(), "--name", "a", "--address", "https://127.0.0.1:1")
	p.fails(1, "promote this machine instead", "node", "init", "--state", p.b.state(), "--name", "b", "--address", "https://127.0.0.1:1")
	p.a.again()
	p.b.again()
	p.b.is("follower", true)
	p.must(p.a, 1)
	p.serves(p.b, 1)
}

// TestMachinesRefuseCommandsOfASingleMachine is the same for machines that share a database.
func TestMachinesRefuseCommandsOfASingleMachine(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	b := m.all[1]
	state := filepath.Join(b.dir, "state")
	m.fails(1, "there is nothing to decide", "store", "adopt", "--state", state)
	m.fails(1, "there is nothing to decide", "store", "push", "--state", state)
	if out := m.command(0, "store", "migrate", "--state", state); !strings.Contains(out, "have version 1: there is nothing to migrate") {
		t.Errorf("store migrate: %s", out)
	}
	m.fails(1, "at which the new machine reaches", "node", "invite", "--state", state)
	m.fails(1, "no group of two machines", "promote", "--state", state)
	b.kill()
	m.fails(1, "the state directory is a copy", "store", "move", "--state", state, "--store", m.url)
	m.fails(1, "they need no pair", "node", "init", "--state", state, "--name", "b", "--address", "https://127.0.0.1:1")
}
