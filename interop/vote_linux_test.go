package interop

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// voteChanges is how many changes TestMachinesVote times: a few in the usual run, more for numbers.
var voteChanges = flag.Int("vote", 5, "how many changes TestMachinesVote times")

// propose replaces the file of a machine by the API.
func (one *machine) propose(query, text string) (reply, time.Duration) {
	one.t.Helper()
	body, err := json.Marshal(map[string]any{"documents": []map[string]string{{"name": "headgate.yaml", "text": text}}})
	if err != nil {
		one.t.Fatal(err)
	}
	began := time.Now()
	out := one.manager().ask("PUT", "/config"+query, string(body), "*")
	return out, time.Since(began)
}

// rejects proposes a file, as a change, with a wait for a confirmation and as a dry run, and wants that another machine rejects it.
func (one *machine) rejects(text string, want ...string) {
	one.t.Helper()
	for _, query := range []string{"", "?confirm_within=1m", "?dry_run=true"} {
		out, took := one.propose(query, text)
		found, err := json.Marshal(out.body)
		if err != nil || out.status != 422 && out.status != 409 && out.status != 400 || took > 3*time.Second {
			one.t.Errorf("change%s: %d %s after %v, %v; want it rejected", query, out.status, found, took, out.err)
		}
		for _, part := range want {
			if !strings.Contains(string(found), part) {
				one.t.Errorf("change%s: %s; want %q", query, found, part)
			}
		}
	}
}

func (one *machine) signal(s syscall.Signal) {
	one.t.Helper()
	if err := one.cmd.Process.Signal(s); err != nil {
		one.t.Fatal(err)
	}
}

// unchecked returns the machines that have not checked a change, by its response.
func unchecked(out reply) string { return fmt.Sprint(out.body["unchecked"]) }

// busy returns an address of this machine that is in use.
func busy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestMachinesVote proposes what one of three machines with a database could not serve: a variable that it lacks, a file, an address
// that is in use. The change is rejected with its name and the place. A machine that is frozen is named after 3 s, and the change is
// made; one that is drained or has stopped is not waited for.
func TestMachinesVote(t *testing.T) {
	t.Parallel()
	m := &machines{t: t, equip: func(one *machine) {
		if one.name == "b" {
			one.inside = append(one.inside, "EXTRA="+busy(t))
			return
		}
		one.inside = append(one.inside, "EXTRA="+free(t), "BODY=hello")
		one.put("page.html", "closed")
	}}
	m.open()
	a, b, c := m.all[0], m.all[1], m.all[2]
	m.eventually("a knows the others", func() bool {
		out := a.manager().must(200, "GET", "/nodes", "", "").body
		return strings.Count(fmt.Sprint(out), "state:") >= 3
	})
	m.rejected()
	m.times(a)

	c.signal(syscall.SIGSTOP)
	text := m.config() + "policies: {p: {}}\n"
	out, took := a.propose("", text)
	if out.status != 200 || took < 3*time.Second || took > 5*time.Second || !strings.Contains(unchecked(out), "node c") || strings.Contains(unchecked(out), "node b") {
		t.Errorf("c is frozen: %d %v after %v, unchecked %s; want a change after 3 s that names c", out.status, out.err, took, unchecked(out))
	}
	t.Logf("a change with a frozen machine took %v", took)
	m.eventually("an event names c", func() bool {
		return strings.Contains(fmt.Sprint(a.manager().must(200, "GET", "/events/history", "", "").body), "unchecked:[node c: ")
	})
	if line := m.output(a, "apply", a.put("next.yaml", m.config()), "--dry-run"); !strings.Contains(line, "warning: node c: did not check this change") {
		t.Errorf("the command line prints %q, want a warning about c", line)
	}
	b.manager().must(200, "POST", "/nodes/c/drain", "{}", "")
	m.eventually("a does not wait for a machine that is drained", func() bool {
		out, took := a.propose("?dry_run=true", m.config())
		return out.status == 200 && took < 3*time.Second && out.body["unchecked"] == nil
	})
	c.signal(syscall.SIGCONT)
	m.eventually("c has the change that was made without it", func() bool { return strings.Contains(string(mustRead(t, c.file)), "policies: {p: {}}") })
	c.stop()
	b.manager().must(200, "POST", "/nodes/c/undrain", "{}", "")
	if out, took := a.propose("", m.config()); out.status != 200 || took >= 3*time.Second || out.body["unchecked"] != nil {
		t.Errorf("c has stopped: %d %v after %v, unchecked %s; want a change at once", out.status, out.err, took, unchecked(out))
	}
}

// rejected proposes what b could not serve.
func (m *machines) rejected() {
	a, b, c := m.all[0], m.all[1], m.all[2]
	page := "  f: {virtual_hosts: [f.example.com], routes: [{fixed_response: {status: 200}, maintenance: {file: page.html}}]}\n"
	if out, _ := a.propose("?dry_run=true", m.config()+page); out.status != 200 || !strings.Contains(fmt.Sprint(out.body["notes"]), "node b: the file") {
		m.t.Errorf("b does not use files that another machine sets: %d %v, want a note", out.status, out.body)
	}
	b.put(filepath.Join("state", "allow-host-fields"), "")
	for what, text := range map[string]struct {
		add  string
		want []string
	}{
		"a variable": {"  v: {virtual_hosts: [v.example.com], routes: [{fixed_response: {status: 200, body: \"${BODY}\"}}]}\n", []string{"node b: ", "BODY"}},
		"a file":     {page, []string{"node b: ", "page.html", "no such file"}},
		"an address": {"tcp_proxies:\n  t: {address: \"${EXTRA}\", servers: [{address: \"127.0.0.1:9\"}]}\n", []string{"node b: ", "address already in use", "headgate node drain b"}},
	} {
		m.t.Log(what)
		a.rejects(m.config()+text.add, text.want...)
	}
	c.rejects(m.config()+"  v: {virtual_hosts: [v.example.com], routes: [{fixed_response: {status: 200, body: \"${BODY}\"}}]}\n", "node b: ")
}

// times measures changes while all machines answer.
func (m *machines) times(one *machine) {
	m.commits = nil
	for range *voteChanges {
		m.change(one, 200)
	}
	slices.Sort(m.commits)
	m.t.Logf("%d changes: p50 %v, p99 %v", len(m.commits), m.commits[len(m.commits)/2], m.commits[len(m.commits)*99/100])
}

// output returns what a command for a machine prints.
func (m *machines) output(one *machine, args ...string) string {
	m.t.Helper()
	return m.command(0, append(args, "--state", one.state())...)
}

// TestPairVotes is TestMachinesVote for a pair: the follower checks what the leader is to save.
func TestPairVotes(t *testing.T) {
	t.Parallel()
	p := newPairOf(t, pairConfig(), func(one *twin) {
		if one.name == "a" {
			one.inside = append(one.inside, "BODY=hello")
		}
	})
	p.eventually("a knows b", func() bool {
		return strings.Contains(fmt.Sprint(p.a.manager().must(200, "GET", "/nodes", "", "").body), "name:b")
	})
	p.a.rejects(pairConfig()+"  v: {virtual_hosts: [v.example.com], routes: [{fixed_response: {status: 200, body: \"${BODY}\"}}]}\n", "node b: ", "BODY")
	p.times(p.a.machine)

	p.b.signal(syscall.SIGSTOP)
	out, took := p.a.propose("", pairConfig()+"policies: {p: {}}\n")
	if out.status != 200 || took > 5*time.Second || !strings.Contains(unchecked(out), "node b") {
		t.Errorf("b is frozen: %d %v after %v, unchecked %s; want a change that names b", out.status, out.err, took, unchecked(out))
	}
	t.Logf("a change with a frozen follower took %v", took)
	p.b.signal(syscall.SIGCONT)
	p.eventually("b has the change that was made without it", func() bool { return strings.Contains(string(mustRead(t, p.b.file)), "policies: {p: {}}") })
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
