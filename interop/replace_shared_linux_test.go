package interop

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestUpgradesOfMachinesThatShareADatabase replaces the process of one machine after the other
// under load, while a third makes changes: no request fails, each change that was acknowledged
// is served by all, and the new process makes changes itself.
func TestUpgradesOfMachinesThatShareADatabase(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range m.all {
		load.Go(func() { m.load(ctx, one) })
	}
	for _, one := range m.all[:2] {
		go acknowledge(one.told)
	}
	for round := range upgradesInARow(2) {
		for _, one := range m.all[:2] {
			m.upgrade(one, func() { m.change(m.all[2], 200) })
			m.change(one, 200) // of the new process
			t.Logf("upgrade %d of %s: %d requests so far, %d failed", round+1, one.name, m.served.Load(), m.failed.Load())
		}
	}
	stop()
	load.Wait()
	m.finish()
	for _, one := range m.all[:2] {
		for _, text := range []string{"same name", "cannot be followed", "level=ERROR"} {
			if log := one.log.String(); strings.Contains(log, text) {
				t.Errorf("%s has logged %q:\n%s", one.name, text, log)
			}
		}
	}
}

// acknowledge reads what headgate tells the service manager, as that does: an upgrade waits for
// it.
func acknowledge(told *net.UnixConn) {
	for data, rights := make([]byte, 1<<10), make([]byte, 1<<10); ; {
		_, n, _, _, err := told.ReadMsgUnix(data, rights)
		if err != nil {
			return
		}
		closeRights(rights[:n])
	}
}

// alone waits until the process has ended that the one of a machine has replaced.
func (m *machines) alone(one *machine) {
	m.t.Helper()
	m.eventually("the process before has ended on "+one.name, func() bool {
		one.client.CloseIdleConnections() // that one waits for a request on each
		out := one.manager().ask("GET", "/upgrade", "", "")
		return out.status == 200 && out.body["previous"] == nil
	})
}

// upgrade replaces the process of a machine, and does something meanwhile. It returns the new
// process.
func (m *machines) upgrade(one *machine, meanwhile func()) (pid int) {
	m.t.Helper()
	m.alone(one)
	var out strings.Builder
	cmd := exec.Command(os.Getenv(binaryFolder), "upgrade", "-o", "json", "--state", filepath.Join(one.dir, "state"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	meanwhile()
	err := cmd.Wait()
	var done struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal([]byte(out.String()), &done) != nil || done.PID == 0 {
		m.t.Fatalf("upgrade of %s: %v, %s\n%s", one.name, err, out.String(), one.log.String())
	}
	m.t.Cleanup(func() { syscall.Kill(done.PID, syscall.SIGKILL) })
	return done.PID
}

// TestFailedUpgradeOnASharedDatabase starts a new process that ends at once, and one that is
// killed when it serves: the old process goes on, and makes and follows changes.
func TestFailedUpgradeOnASharedDatabase(t *testing.T) {
	m := &machines{t: t}
	m.open()
	a, b := m.all[0], m.all[1]
	g := prepare(t)
	for name, value := range map[string]string{"HEADGATE_STORE": m.url, "HEADGATE_NODE": "d", "WEB": free(t), "SECURE": free(t)} {
		t.Setenv(name, value)
	}
	r := prepareReplaced(t, g, m.config())
	if err := os.Mkdir(filepath.Join(g.dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(a.dir, "state", "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	g.put(filepath.Join("state", "store.key"), string(key))
	r.run()
	d := &machine{gate: g, name: "d", web: os.Getenv("WEB"), client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	d.up.Store(true)
	m.all = append(m.all, d)
	m.change(b, 200)

	r.install("exit 1")
	if out, err := r.command("upgrade"); err == nil {
		t.Fatalf("it was upgraded: %s", out)
	}
	m.change(b, 200) // seen by d
	m.change(d, 200)

	r.install("")
	r.upgrade()
	r.alone()
	m.change(b, 200)
	m.change(d, 200)
	if log := r.logged(); strings.Contains(log, "same name") {
		t.Errorf("it takes its other process for another machine:\n%s", log)
	}
}
