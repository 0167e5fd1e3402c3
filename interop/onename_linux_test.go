package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// state returns the state directory of a machine.
func (one *machine) state() string { return filepath.Join(one.dir, "state") }

// TestTwoMachinesWithOneName starts a machine with the name of another: a new one does not
// start, and a clone of the other, state directory included, is reported.
func TestTwoMachinesWithOneName(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	a, b := m.all[0], m.all[1]
	listed := func() string { return m.command(0, "node", "list", "--state", a.state()) }
	m.eventually("b is listed", func() bool { return strings.Contains(listed(), "\nb ") })
	key, err := os.ReadFile(filepath.Join(a.state(), "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	d := &machine{gate: prepare(t), name: "b", web: free(t), secure: free(t)}
	d.inside = []string{"env", "WEB=" + d.web, "SECURE=" + d.secure}
	d.flags = []string{"--store", m.url, "--node", "b"}
	if err := os.Mkdir(d.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	d.put(filepath.Join("state", "store.key"), string(key))
	d.put("headgate.yaml", m.config())
	m.fails(2, "another machine named b", "run", "--config", d.file, "--state", d.state(), "--store", m.url, "--node", "b")

	clone, err := os.ReadFile(filepath.Join(b.state(), "machine"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("rm", "-rf", d.state()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Mkdir(d.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	d.put(filepath.Join("state", "store.key"), string(key))
	d.put(filepath.Join("state", "machine"), string(clone))
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	d.start(string(text))
	m.eventually("the clone is reported", func() bool { return strings.Contains(listed(), "another machine has the same name") })
	m.change(a, 200)
	m.serveAll(m.acked)
}
