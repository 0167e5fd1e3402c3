package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// remoteAgent is a headgate agent that runs.
type remoteAgent struct {
	t   *testing.T
	cmd *exec.Cmd
	log *record
}

// startAgent runs an agent that reports the containers of an engine.
func startAgent(t *testing.T, to, token, endpoint string) *remoteAgent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &remoteAgent{t: t, log: &record{}}
	a.cmd = exec.Command(os.Getenv(binaryFolder), "agent", "--to", "http://"+to, "--token-file", file, "--endpoint", endpoint)
	a.cmd.Stderr = a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

// kill ends the agent as a crash would.
func (a *remoteAgent) kill() {
	if a.cmd != nil {
		a.cmd.Process.Signal(syscall.SIGKILL)
		a.cmd.Wait()
		a.cmd = nil
	}
	if a.t.Failed() {
		a.t.Logf("the agent:\n%s", a.log)
	}
}

// invite returns the token of an agent.
func (g *gate) invite(name string) string {
	g.t.Helper()
	out, err := exec.Command(os.Getenv(binaryFolder), "agent", "invite", name, "--config", g.file, "--state", filepath.Join(g.dir, "state")).Output()
	if err != nil {
		g.t.Fatalf("agent invite: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestDockerOfAnotherMachine holds that the containers of a real engine are published by a
// headgate that an agent reports them to: through the life of containers, of headgate and of
// the agent.
func TestDockerOfAnotherMachine(t *testing.T) {
	d := startDocker(t)
	admin, web := free(t), free(t)
	config := fmt.Sprintf(`
version: 1
admin: {address: %q}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
discovery: {agent: {web7: {address: 127.0.0.1, hosts: ["*.far.example"]}}}
proxies:
  hand: {virtual_hosts: [hand.far.example], routes: [{fixed_response: {status: 200, body: by hand}}]}
`, admin, web)
	g := start(t, config)
	token := g.invite("web7")
	a := startAgent(t, admin, token, d.endpoint())
	v := newVisitor(t, web)

	d.run("app", "headgate.host=app.far.example")
	v.sees("app.far.example", 200, "app")
	if text := g.state(); !strings.Contains(text, "container app@web7") || !strings.Contains(text, "discovery.agent.web7") {
		t.Errorf("the status does not name the container and its machine: %s", text)
	}
	d.run("thief", "headgate.host=hand.far.example")
	d.run("other", "headgate.host=other.example")
	_, port, _ := net.SplitHostPort(admin)
	d.runAt("admin", "host", free(t), "headgate.host=admin.far.example", "headgate.port="+port)
	for _, want := range []string{"is one of proxy hand", "does not let labels name the host other.example", "is the admin listener of headgate itself"} {
		for until := time.Now().Add(patience); !strings.Contains(g.state(), want); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("no issue %q: %s", want, g.state())
			}
		}
	}
	v.sees("hand.far.example", 200, "by hand")

	d.do("rm", "-f", "app")
	v.sees("app.far.example", 404, "")
	d.run("app", "headgate.host=app.far.example")
	v.sees("app.far.example", 200, "app")

	// headgate is killed and comes back: the container is published at once, and the agent
	// finds it again.
	g.kill()
	g.start(config)
	v.sees("app.far.example", 200, "app")
	d.run("late", "headgate.host=late.far.example")
	v.sees("late.far.example", 200, "late")

	// The agent is killed: its machine is stale, and then gone.
	began := time.Now()
	a.kill()
	for !strings.Contains(g.state(), `"stale"`) {
		if time.Since(began) > patience {
			t.Fatalf("the machine does not become stale: %s", g.state())
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("stale after %v", time.Since(began).Round(time.Second))
	v.sees("app.far.example", 200, "app")
	for until := time.Now().Add(2 * patience); ; time.Sleep(200 * time.Millisecond) {
		if s, _, _ := v.get("app.far.example", "/"); s == 404 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the containers of an agent that is away stay")
		}
	}
	if d := time.Since(began); d < 45*time.Second || d > 75*time.Second {
		t.Errorf("gone after %v, want about 60s", d)
	} else {
		t.Logf("gone after %v", d.Round(time.Second))
	}
	a = startAgent(t, admin, token, d.endpoint())
	v.sees("app.far.example", 200, "app")

	// A revoked token reports nothing any more.
	if out, err := exec.Command(os.Getenv(binaryFolder), "token", "revoke", "web7", "--config", g.file, "--state", filepath.Join(g.dir, "state")).CombinedOutput(); err != nil {
		t.Fatalf("token revoke: %v\n%s", err, out)
	}
	d.run("never", "headgate.host=never.far.example")
	for until := time.Now().Add(patience); !strings.Contains(a.log.String(), "not accepted"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the agent does not log that its token is revoked: %s", a.log)
		}
	}
	v.sees("never.far.example", 404, "")
}
