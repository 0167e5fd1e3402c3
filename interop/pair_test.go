package interop

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// pairChanges is how many changes TestPair times: a few in the usual run, more for numbers.
var pairChanges = flag.Int("pair", 10, "how many changes TestPair times")

// cable is a TCP proxy between two machines that can be cut.
type cable struct {
	t       *testing.T
	address string // of the listener
	to      string
	mu      sync.Mutex
	cut     bool
	open    map[net.Conn]bool
}

// newCable returns a cable to an address.
func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{t: t, address: l.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); c.set(true) })
	go acceptAll(l, c.carry)
	return c
}

func (c *cable) carry(client net.Conn) {
	c.mu.Lock()
	to := c.to
	c.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.open[client], c.open[server] = true, true
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { io.Copy(server, client); server.Close() })
	both.Go(func() { io.Copy(client, server); client.Close() })
	both.Wait()
	c.mu.Lock()
	delete(c.open, client)
	delete(c.open, server)
	c.mu.Unlock()
}

// lead cuts what is open, and leads to another address from now on.
func (c *cable) lead(to string) {
	c.set(true)
	c.mu.Lock()
	c.to = to
	c.mu.Unlock()
	c.set(false)
}

// set cuts the cable or joins it again.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for conn := range c.open {
		conn.Close()
	}
}

// twin is one machine of a pair.
type twin struct {
	*machine
	admin string
	cable *cable // to its management port
}

// pair is two machines of which one follows the other, under load.
type pairOfMachines struct {
	*machines
	a, b *twin
}

// pairConfig is the configuration of both.
func pairConfig() string {
	return `version: 1
admin: {address: "${ADMIN}"}
access_log: {enabled: false}
ports:
  web: {address: "${WEB}", protocol: http}
proxies:
  count: {virtual_hosts: [count.example.com], routes: [{fixed_response: {status: 200, body: "n0"}}]}
  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: "shop"}}]}
`
}

// newPair makes a pair and starts both machines.
func newPair(t *testing.T) *pairOfMachines {
	t.Helper()
	return newPairOf(t, pairConfig(), func(*twin) {})
}

// newPairOf is newPair with another configuration, and with what a machine needs for it.
func newPairOf(t *testing.T, config string, equip func(*twin)) *pairOfMachines {
	t.Helper()
	m := &machines{t: t}
	p := &pairOfMachines{machines: m}
	for _, name := range []string{"a", "b"} {
		one := &twin{machine: &machine{gate: prepare(t), name: name, web: free(t)}, admin: lasting(t)}
		one.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
		one.inside = []string{"env", "WEB=" + one.web, "ADMIN=0.0.0.0:" + one.admin}
		one.cable = newCable(t, "127.0.0.1:"+one.admin)
		one.machine.admin = "https://127.0.0.1:" + one.admin
		equip(one)
		m.all = append(m.all, one.machine)
		if name == "a" {
			p.a = one
		} else {
			p.b = one
		}
	}
	m.command(0, "node", "init", "--state", p.a.state(), "--name", "a", "--address", "https://"+p.a.cable.address)
	p.a.start(config)
	p.join()
	p.b.start(config)
	p.a.up.Store(true)
	p.b.up.Store(true)
	return p
}

func (w *twin) state() string { return filepath.Join(w.dir, "state") }

// invite returns a token of machine a.
func (p *pairOfMachines) invite(name string) string {
	p.t.Helper()
	out := p.a.manager().must(201, "POST", "/pair/invitations", fmt.Sprintf(`{"name": %q}`, name), "")
	return out.body["token"].(string)
}

// join makes b a member.
func (p *pairOfMachines) join() {
	p.t.Helper()
	file := p.b.put("token", p.invite("b"))
	p.command(0, "node", "join", "--state", p.b.state(), "--name", "b", "--token-file", file, "--address", "https://"+p.b.cable.address)
}

// again starts a machine with the files that it has.
func (w *twin) again() {
	w.t.Helper()
	data, err := os.ReadFile(w.file)
	if err != nil {
		w.t.Fatal(err)
	}
	w.start(string(data))
	w.up.Store(true)
}

// crash kills a machine.
func (w *twin) crash() {
	w.t.Helper()
	w.up.Store(false)
	w.kill()
}

// has is what a machine reports of the pair.
func (w *twin) has() map[string]any {
	out := w.manager().ask("GET", "/pair", "", "")
	if out.err != nil {
		return map[string]any{}
	}
	return out.body
}

// is waits until a machine has a role and is connected or not.
func (w *twin) is(role string, connected bool) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%s is %s, connected: %t", w.name, role, connected), func() bool {
		st := w.has()
		return st["role"] == role && st["connected"] == connected
	})
}

// count makes a change on a machine, and returns the response.
func (p *pairOfMachines) count(on *twin, n int) reply {
	return on.manager().ask("PATCH", "/proxies/count", fmt.Sprintf(`{"routes": [{"fixed_response": {"status": 200, "body": "n%d"}}]}`, n), "*")
}

// must makes a change that is acknowledged.
func (p *pairOfMachines) must(on *twin, n int) {
	p.t.Helper()
	if out := p.count(on, n); out.err != nil || out.status != 200 {
		p.t.Fatalf("change n%d on %s: %d %v %v", n, on.name, out.status, out.body, out.err)
	}
}

// serves waits until a machine serves a change.
func (p *pairOfMachines) serves(on *twin, n int) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%s serves n%d", on.name, n), func() bool { return on.number() == n })
}

// refused makes a change that a machine refuses, and the answer names an address.
func (p *pairOfMachines) refused(on *twin, code, names string) {
	p.t.Helper()
	out := p.count(on, 99)
	if out.body["code"] != code || !strings.Contains(fmt.Sprint(out.body["detail"]), names) {
		p.t.Fatalf("a change on %s: %d %v, want %s with %s", on.name, out.status, out.body, code, names)
	}
}

// metrics waits until the metrics of a machine have lines that begin with these.
func (p *pairOfMachines) metrics(of *twin, lines ...string) {
	p.t.Helper()
	link := filepath.Join(shortDir(p.t), "state")
	if err := os.Symlink(of.state(), link); err != nil {
		p.t.Fatal(err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
		}}}
	for _, line := range lines {
		eventually(p.t, fmt.Sprintf("the metrics of %s have %s", of.name, line), func() bool {
			rs, err := client.Get("http://headgate/metrics")
			if err != nil {
				return false
			}
			defer rs.Body.Close()
			text, err := io.ReadAll(rs.Body)
			return err == nil && strings.Contains(string(text), "\n"+line)
		})
	}
}

// TestPair goes through the life of a pair under load: changes arrive at the follower, the
// leader is killed, the follower is promoted, the old leader comes back and follows, and the
// pair is turned around without a loss. No request to a machine that runs fails.
func TestPair(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.a.is("leader", true)
	p.b.is("follower", true)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range p.all {
		for range 2 {
			load.Go(func() { p.load(ctx, one) })
		}
	}
	n := 0
	for range *pairChanges {
		n++
		p.must(p.a, n)
		began := time.Now()
		p.serves(p.b, n)
		p.delays = append(p.delays, time.Since(began))
	}
	slices.Sort(p.delays)
	t.Logf("%d changes, from the leader's acknowledgement to acting on the follower: p50 %v, p99 %v", n, percentile(p.delays, 50), percentile(p.delays, 99))
	p.refused(p.b, "not_leader", "https://"+p.a.cable.address)

	p.metrics(p.a, "headgate_pair_leads 1", "headgate_pair_connected 1", "headgate_pair_lag_revisions 0", "headgate_pair_reconnects_total 1", "headgate_pair_last_contact_timestamp_seconds ")
	p.metrics(p.b, "headgate_pair_leads 0", "headgate_pair_connected 1", "headgate_pair_lag_revisions 0", "headgate_pair_reconnects_total 1", "headgate_pair_last_contact_timestamp_seconds ")
	p.a.crash()
	p.b.is("follower", false)
	p.metrics(p.b, "headgate_pair_connected 0")
	p.serves(p.b, n)
	p.refused(p.b, "not_leader", "https://"+p.a.cable.address)
	p.b.up.Store(false)
	p.b.stop() // it also starts without the leader
	p.b.again()
	p.serves(p.b, n)
	if out := p.b.manager().ask("POST", "/pair/promote", `{}`, ""); out.status != 409 || !strings.Contains(fmt.Sprint(out.body["detail"]), "--alone") {
		t.Fatalf("promote without the leader: %d %v", out.status, out.body)
	}
	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true, "why": "a is lost"}`, "")
	n++
	p.must(p.b, n)

	p.a.again() // it yields: the other one was promoted
	p.a.is("follower", true)
	p.serves(p.a, n)
	p.refused(p.a, "not_leader", "https://"+p.b.cable.address)
	if d := p.a.has()["diverged"]; d != nil {
		t.Errorf("a had no changes of its own, and reports %v", d)
	}
	n++
	p.must(p.b, n)
	p.serves(p.a, n)

	p.a.manager().must(200, "POST", "/pair/promote", `{}`, "") // b hands over
	p.b.is("follower", true)
	n++
	p.must(p.a, n)
	p.serves(p.b, n)
	audit := p.b.manager().must(200, "GET", "/audit?limit=1000", "", "")
	for _, action := range []string{"node.invite", "node.join", "node.promote"} {
		if !strings.Contains(fmt.Sprint(audit.body), action) {
			t.Errorf("the audit of the follower has no %s", action)
		}
	}
	stop()
	load.Wait()
	p.failures.Range(func(text, _ any) bool { t.Errorf("failed request: %v", text); return true })
	t.Logf("%d requests, %d failed", p.served.Load(), p.failed.Load())
}

// TestPairIsCut cuts the network between two machines. The leader goes on, and the follower
// gets the changes when the network is back. When both were promoted, the one of the lower
// epoch yields and keeps what only it had.
func TestPairIsCut(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	p.must(p.a, 1)
	p.serves(p.b, 1)
	p.a.cable.set(true)
	p.b.cable.set(true)
	p.b.is("follower", false)
	p.must(p.a, 2)
	if got := p.b.number(); got != 1 {
		t.Fatalf("b serves n%d while it is cut off, want n1", got)
	}
	p.a.cable.set(false)
	p.b.cable.set(false)
	p.serves(p.b, 2)

	p.a.cable.set(true)
	p.b.cable.set(true)
	p.b.is("follower", false)
	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.must(p.b, 3)
	p.must(p.a, 4) // it does not know
	p.a.cable.set(false)
	p.b.cable.set(false)
	p.a.is("follower", true)
	p.serves(p.a, 3)
	eventually(t, "a keeps what only it had", func() bool { return p.a.has()["diverged"] != nil })
	d := p.a.has()["diverged"].(map[string]any)
	if text, err := os.ReadFile(filepath.Join(d["folder"].(string), "difference.txt")); err != nil || !strings.Contains(string(text), "revision/") {
		t.Errorf("the difference: %q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(d["folder"].(string), "state.tar.gz")); err != nil || info.Size() == 0 {
		t.Errorf("the archive of what a had: %v", err)
	}
	eventually(t, "b has the event of the difference", func() bool {
		out := p.b.manager().ask("GET", "/events/history?types=node.diverged", "", "")
		return strings.Contains(fmt.Sprint(out.body), "diverged")
	})

	// Both are promoted while they are cut off: the higher epoch counts.
	p.a.cable.set(true)
	p.b.cable.set(true)
	p.a.is("follower", false)
	p.a.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.b.stop()
	p.b.again()
	p.b.is("waiting", false)
	p.refused(p.b, "not_leader", "promote --alone")
	p.serves(p.b, 3) // traffic goes on
	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.must(p.a, 5)
	p.must(p.b, 6)
	p.a.cable.set(false)
	p.b.cable.set(false)
	p.a.is("follower", true) // the numbers are equal, and b sorts after a
	p.b.is("leader", true)
	p.serves(p.a, 6)
}

// TestPairIsRestored restores a backup as the guide does: of the leader, whose disk is lost, while
// the follower runs; and then of a machine of a pair that is lost as a whole.
func TestPairIsRestored(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	p.must(p.a, 1)
	p.serves(p.b, 1)
	backup := filepath.Join(t.TempDir(), "backup")
	p.a.gate.command("backup", backup, "--config", p.a.file)
	p.must(p.a, 2)
	p.serves(p.b, 2)
	restore := func() {
		p.a.crash()
		if err := os.Rename(p.a.state(), filepath.Join(t.TempDir(), "lost")); err != nil {
			t.Fatal(err)
		}
		p.a.start("version: 1\nadmin: {address: \"\"}\n")
		p.a.gate.command("restore", backup, "--config", p.a.file)
		p.a.stop()
		p.command(0, "node", "init", "--state", p.a.state(), "--name", "a", "--address", "https://"+p.a.cable.address)
		p.a.again()
	}
	restore()
	p.a.is("leader", true)
	p.b.is("follower", true)
	p.serves(p.b, 1)
	p.must(p.a, 3)
	p.serves(p.b, 3)

	p.b.crash()
	restore()
	p.a.is("waiting", false)
	p.a.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.a.manager().must(204, "DELETE", "/pair/members/b", "", "*")
	p.must(p.a, 4)
	if err := os.Rename(p.b.state(), filepath.Join(t.TempDir(), "lost")); err != nil {
		t.Fatal(err)
	}
	p.join()
	p.b.again()
	p.b.is("follower", true)
	p.serves(p.b, 4)
}

// TestPairCredentials attacks joining and the credentials.
func TestPairCredentials(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	join := func(token, name string) (string, error) {
		cmd := exec.Command(os.Getenv(binaryFolder), "node", "join", "--state", t.TempDir(), "--name", name, "--address", "https://127.0.0.1:1")
		cmd.Stdin = strings.NewReader(token)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	used, err := os.ReadFile(filepath.Join(p.b.dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := join(string(used), "b"); err == nil || !strings.Contains(out, "not valid") {
		t.Errorf("a used token: %v %s", err, out)
	}
	if out := p.command(2, "node", "join", "--state", t.TempDir(), "--address", "https://127.0.0.1:1", string(used)); !strings.Contains(out, "must not be an argument") {
		t.Errorf("a token as an argument: %s", out)
	}
	if out := p.a.manager().ask("POST", "/pair/invitations", `{}`, ""); out.body["code"] != "group_full" {
		t.Errorf("an invitation of a third machine: %d %v", out.status, out.body)
	}
	if out := p.b.manager().ask("POST", "/pair/invitations", `{}`, ""); out.body["code"] != "not_leader" {
		t.Errorf("an invitation by the follower: %d %v", out.status, out.body)
	}

	p.a.manager().must(204, "DELETE", "/pair/members/b", "", "*")
	p.b.is("follower", false)
	eventually(t, "b reports that it was removed", func() bool { return strings.Contains(fmt.Sprint(p.b.has()["problem"]), "revoked") })
	p.must(p.a, 1)
	if got := p.b.number(); got != 0 {
		t.Errorf("a machine that was removed got change n%d", got)
	}

	token := p.invite("c")
	if out, err := join(token, "a"); err == nil || !strings.Contains(out, "the token is for the machine c") {
		t.Errorf("a machine with the name of the leader: %v %s", err, out)
	}
	var joined, refused atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := join(token, "c"); err == nil {
				joined.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	both.Wait()
	if joined.Load() != 1 || refused.Load() != 1 {
		t.Errorf("two machines with one token: %d joined, %d were refused", joined.Load(), refused.Load())
	}
}

// TestPairSync acknowledges changes only when the follower has them.
func TestPairSync(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	p.a.stop()
	settings, err := os.ReadFile(filepath.Join(p.a.state(), "node.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.a.put(filepath.Join("state", "node.yaml"), string(settings)+"follow: {sync: true}\n")
	p.a.again()
	p.a.is("leader", true)
	p.a.manager().must(201, "POST", "/users", `{"name": "ann", "role": "admin", "password": "correct horse battery"}`, "")
	acked := 0
	for n := 1; n <= 5; n++ {
		p.must(p.a, n)
		acked = n
	}
	p.a.crash() // at once after the acknowledgement
	p.b.manager().must(200, "POST", "/pair/promote", `{"alone": true}`, "")
	p.serves(p.b, acked)
	p.a.again()
	p.a.is("follower", true)
	p.a.manager().must(200, "POST", "/pair/promote", `{}`, "")
	p.a.is("leader", true)
	p.b.crash()
	p.a.is("leader", false)
	p.refused(p.a, "not_followed", "sync")
	if _, expires, status := p.a.machine.signIn("correct horse battery"); status != 201 || time.Until(expires) < 24*time.Hour {
		t.Errorf("sign in at the leader while the follower is away: %d, until %v", status, expires)
	}
	p.serves(p.a, acked)
	p.b.again()
	p.a.is("leader", true)
	p.must(p.a, 7)
	p.notConfirmed(8)
}

// notConfirmed freezes the follower: a change waits 3 seconds for its check and 5 for its
// confirmation, and then the
// response says that only the leader has it.
func (p *pairOfMachines) notConfirmed(n int) {
	p.t.Helper()
	signal := func(s syscall.Signal) {
		if err := p.b.cmd.Process.Signal(s); err != nil {
			p.t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	began := time.Now()
	out := p.count(p.a, n)
	took := time.Since(began)
	signal(syscall.SIGCONT)
	text := fmt.Sprint(out.body["detail"])
	if out.status != 503 || out.body["code"] != "store_unavailable" || !strings.Contains(text, "the follower b has not confirmed it") || took < 4*time.Second || took > 11*time.Second {
		p.t.Errorf("a change with a frozen follower: %d %v, after %v", out.status, out.body, took)
	}
	p.t.Logf("a change with a frozen follower: %v, after %v", text, took.Round(10*time.Millisecond))
	// The leader may end the connection of a follower that has not confirmed; it connects again.
	p.eventually("a change is confirmed again", func() bool { return p.count(p.a, n+1).status == 200 })
	p.serves(p.b, n+1)
}
