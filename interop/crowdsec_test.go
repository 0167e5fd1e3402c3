package interop

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// engine is a CrowdSec engine with its local API, and nothing else: it reads no logs.
type engine struct {
	t               *testing.T
	program, cscli  string
	address, config string
	cmd             *exec.Cmd
	out             *record
}

const engineConfig = `
common: {daemonize: false, log_media: stdout, log_level: info, log_dir: %[1]s, working_dir: %[1]s}
config_paths:
  config_dir: %[1]s
  data_dir: %[1]s
  simulation_path: %[1]s/simulation.yaml
  hub_dir: %[1]s/hub
  index_path: %[1]s/hub/.index.json
  notification_dir: %[1]s
  plugin_dir: %[1]s/plugins
crowdsec_service: {acquisition_path: %[1]s/acquis.yaml}
cscli: {output: json}
db_config: {log_level: info, type: sqlite, db_path: %[1]s/crowdsec.db, flush: {max_items: 5000, max_age: 7d}}
plugin_config: {user: nobody, group: nogroup}
api:
  client: {insecure_skip_verify: false, credentials_path: %[1]s/local.yaml}
  server: {log_level: info, listen_uri: "%[2]s", profiles_path: %[1]s/profiles.yaml, console_path: %[1]s/console.yaml}
prometheus: {enabled: false}
`

// startEngine runs an engine until the test ends.
func startEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{t: t, program: needed(t, "crowdsec", "crowdsec"), cscli: needed(t, "cscli", "crowdsec"), address: free(t), out: &record{}}
	dir := t.TempDir()
	e.config = filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{
		"config.yaml": fmt.Sprintf(engineConfig, dir, e.address), "simulation.yaml": "simulation: false\n", "acquis.yaml": "",
		"profiles.yaml": "name: default\nfilters: [\"false\"]\ndecisions: [{type: ban, duration: 1h}]\non_success: break\n",
		"console.yaml":  "{}\n", "local.yaml": "url: http://" + e.address + "\nlogin: test\npassword: testtesttest\n", "hub/.index.json": "{}",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.do("machines", "add", "test", "--password", "testtesttest", "--force", "-f", filepath.Join(dir, "local.yaml"))
	e.start()
	t.Cleanup(e.stop)
	return e
}

func (e *engine) start() {
	e.t.Helper()
	e.cmd = exec.Command(e.program, "-c", e.config, "-no-cs")
	e.cmd.Stdout, e.cmd.Stderr = e.out, e.out
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		rs, err := http.Get("http://" + e.address + "/health")
		if err == nil {
			rs.Body.Close()
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("the engine does not answer: %v\n%s", err, e.out.String())
		}
	}
}

func (e *engine) stop() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// do runs cscli.
func (e *engine) do(args ...string) string {
	e.t.Helper()
	out, err := exec.Command(e.cscli, append([]string{"-c", e.config}, args...)...).Output()
	if err != nil {
		told := ""
		if exit, ok := err.(*exec.ExitError); ok {
			told = string(exit.Stderr)
		}
		e.t.Fatalf("cscli %s: %v\n%s%s", strings.Join(args, " "), err, out, told)
	}
	return strings.TrimSpace(string(out))
}

// TestDecisionsOfCrowdSecRefuseClients runs headgate beside a real engine: its decisions
// are made and deleted by cscli, and the engine is stopped and started meanwhile.
func TestDecisionsOfCrowdSecRefuseClients(t *testing.T) {
	e := startEngine(t)
	e.do("decisions", "add", "--range", "198.51.100.0/24")
	// By hand a decision of such a width is possible, and must not refuse everybody.
	e.do("decisions", "add", "--range", "0.0.0.0/0")
	e.do("decisions", "add", "--ip", "203.0.113.50", "--type", "captcha")
	key := strings.Trim(e.do("bouncers", "add", "headgate", "-o", "raw"), "\"\n ")
	address := free(t)
	g := start(t, fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
lists:
  crowdsec: {crowdsec: {url: "http://%s", key: %q, interval: 1s}}
proxies:
  p:
    client_ip: {trusted: [127.0.0.1]}
    ip_filter: {deny: ["list:crowdsec"]}
    routes: [{fixed_response: {status: 204}}]
`, address, e.address, key))
	status := func(client string) int {
		t.Helper()
		r := askAll(address, wanted{method: "GET", host: "a.example", path: "/", header: http.Header{"X-Forwarded-For": {client}}})
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.status
	}
	becomes := func(client string, want int) {
		t.Helper()
		for end := time.Now().Add(patience); status(client) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not get %d\n%s", client, want, g.log.String())
			}
		}
	}
	becomes("198.51.100.7", 403)
	for _, client := range []string{"203.0.113.9", "203.0.113.50", "192.0.2.1"} {
		if got := status(client); got != 204 {
			t.Errorf("%s gets %d, nothing was decided about it", client, got)
		}
	}
	e.do("decisions", "add", "--ip", "203.0.113.9", "--reason", "one")
	began := time.Now()
	becomes("203.0.113.9", 403)
	t.Logf("a decision refuses after %v, asked every second", time.Since(began).Round(10*time.Millisecond))
	e.do("decisions", "add", "--ip", "2001:db8::9")
	becomes("2001:db8::9", 403)

	// The engine goes away: what it decided stays. It comes back with another decision.
	e.stop()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var s struct {
			Lists []struct{ State string }
		}
		if err := g.status("", &s); err == nil && len(s.Lists) == 1 && s.Lists[0].State == "error" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody notices that the engine is away")
		}
	}
	if got := status("203.0.113.9"); got != 403 {
		t.Errorf("without the engine a banned client gets %d", got)
	}
	e.start()
	e.do("decisions", "delete", "--ip", "203.0.113.9")
	becomes("203.0.113.9", 204)
	if got := status("198.51.100.7"); got != 403 {
		t.Errorf("the range is gone with the address: %d", got)
	}

	// A restart while the engine is away uses what was kept.
	e.stop()
	g.end()
	g = prepareAgain(t, g)
	if got := status("198.51.100.7"); got != 403 {
		t.Errorf("after a restart without the engine the range gets %d", got)
	}
	e.start()
}

// prepareAgain starts a gate that was ended, with its state.
func prepareAgain(t *testing.T, was *gate) *gate {
	t.Helper()
	text, err := os.ReadFile(was.file)
	if err != nil {
		t.Fatal(err)
	}
	was.start(string(text))
	return was
}
