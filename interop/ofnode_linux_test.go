package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMachinesShowEachOther reads the status, the log and the charts of each machine of a group
// on another one, through the API and the command line, follows a log, and stops and freezes a
// machine that is shown.
func TestMachinesShowEachOther(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	a, b, c := m.all[0], m.all[1], m.all[2]
	m.eventually("a knows all", func() bool { return len(a.manager().must(200, "GET", "/nodes", "", "").body["items"].([]any)) == 3 })
	for _, one := range m.all {
		if _, err := one.get("shop.example.com", "/on-"+one.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, here := range m.all {
		for _, there := range m.all {
			m.shown(here, there, "count")
		}
	}
	before := a.manager().must(200, "GET", "/store", "", "").body["head"]
	began := time.Now()
	const questions = 30
	for range questions {
		a.manager().must(200, "GET", "/series?period=15m&node=b", "", "")
	}
	t.Logf("a question over the database takes %v", time.Since(began)/questions)
	if after := a.manager().must(200, "GET", "/store", "", "").body["head"]; fmt.Sprint(after) != fmt.Sprint(before) {
		if n := after.(float64) - before.(float64); n > 5 { // what machines publish meanwhile
			t.Errorf("%d questions made %v revisions of the store", questions, n)
		}
	}
	m.eventually("a lists the traffic of all", func() bool {
		items := a.manager().must(200, "GET", "/traffic", "", "").body["items"].([]any)
		for _, item := range items {
			if one := item.(map[string]any); one["problem"] != nil || one["requests_per_second"].(float64) == 0 {
				return false
			}
		}
		return len(items) == 3
	})
	m.followed(a, c)
	if out := a.machine("status", "--node", "d"); !strings.Contains(out, "there is no machine d; the machines are a, b, c") {
		t.Errorf("the status of d: %s", out)
	}
	m.gone(a, b, "did not respond within 3s", b.kill)
	m.gone(a, c, "was stopped", c.stop)
}

// TestMachinesOfAPairShowEachOther is the same for a pair.
func TestMachinesOfAPairShowEachOther(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.a.is("leader", true)
	p.b.is("follower", true)
	for _, one := range p.all {
		if _, err := one.get("shop.example.com", "/on-"+one.name); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("a knows b", func() bool { return len(p.a.manager().must(200, "GET", "/nodes", "", "").body["items"].([]any)) == 2 })
	p.shown(p.a.machine, p.b.machine, "count")
	p.shown(p.b.machine, p.a.machine, "count")
	p.followed(p.a.machine, p.b.machine)
	p.followed(p.b.machine, p.a.machine)
	p.a.cable.set(true) // b reaches a through it
	p.gone(p.a.machine, p.b.machine, "", func() {})
	p.a.cable.set(false)
	p.eventually("b is shown again", func() bool {
		return p.a.manager().ask("GET", "/status?proxies=false&node=b", "", "").status == 200
	})
}

// shown holds that a machine shows the status, log and charts of another, and no other's.
func (m *machines) shown(here, there *machine, proxy string) {
	m.t.Helper()
	at := "node=" + there.name
	text := fmt.Sprint(here.manager().must(200, "GET", "/status?"+at, "", "").body)
	for _, one := range m.all {
		if strings.Contains(text, one.web) != (one == there) {
			m.t.Errorf("the status of %s on %s, where %s listens at %s: %s", there.name, here.name, one.name, one.web, text)
		}
	}
	if out := here.machine("status", "--node", there.name); !strings.Contains(out, proxy) || !strings.Contains(out, there.web) || here != there && strings.Contains(out, here.web) {
		m.t.Errorf("status --node %s on %s: %s", there.name, here.name, out)
	}
	m.eventually(here.name+" shows the log of "+there.name, func() bool {
		out := here.machine("logs", "--node", there.name, "--path", "/on-")
		for _, one := range m.all {
			if strings.Contains(out, "/on-"+one.name+" ") != (one == there) {
				return false
			}
		}
		return true
	})
	m.eventually(here.name+" has charts of "+there.name, func() bool {
		for _, p := range here.manager().must(200, "GET", "/series?proxy=shop&"+at, "", "").body["points"].([]any) {
			if p.(map[string]any)["requests"].(float64) > 0 {
				return true
			}
		}
		return false
	})
}

// followed holds that the log of a machine is followed on another: each request once, in order.
func (m *machines) followed(here, there *machine) {
	m.t.Helper()
	cmd := exec.Command(os.Getenv(binaryFolder), "logs", "--follow", "--node", there.name, "--path", "/live-", "--state", filepath.Join(here.dir, "state"))
	out := &locked{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	first := 0
	m.eventually("the log of "+there.name+" is followed", func() bool { // from now on, so the first are missed
		first++
		if _, err := there.get("shop.example.com", fmt.Sprintf("/live-0-%d", first)); err != nil {
			m.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(out.String(), "/live-0-")
	})
	const each = 40
	want := ""
	for i := range each {
		path := fmt.Sprintf("/live-1-%d", i)
		want += path + "\n"
		if _, err := there.get("shop.example.com", path); err != nil {
			m.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // so that they are read by several questions
	}
	got := ""
	m.eventually("all that is served is shown", func() bool {
		got = ""
		for line := range strings.Lines(out.String()) {
			if _, path, ok := strings.Cut(line, "/live-1-"); ok {
				path, _, _ = strings.Cut(path, " ")
				got += "/live-1-" + path + "\n"
			}
		}
		return len(got) >= len(want)
	})
	if got != want {
		m.t.Errorf("the log of %s on %s: got %q, want %q", there.name, here.name, got, want)
	}
}

// gone holds that a machine that has gone is reported, within the time that it has to answer.
func (m *machines) gone(here, there *machine, why string, leave func()) {
	m.t.Helper()
	leave()
	began := time.Now()
	out := here.manager().ask("GET", "/status?proxies=false&node="+there.name, "", "")
	if took := time.Since(began); out.status != 504 && out.status != 503 || took > 3*time.Second+patience/4 {
		m.t.Fatalf("%s, which is away, on %s: %d %v after %v", there.name, here.name, out.status, out.body, took)
	}
	m.eventually(there.name+" is reported", func() bool {
		text := here.machine("logs", "--node", there.name)
		return strings.Contains(text, "machine "+there.name) && strings.Contains(text, why)
	})
}

// locked is what several goroutines write and read.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
