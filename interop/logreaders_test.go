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

// requestsForALog runs headgate with an access log in a file, asks what good and bad
// clients ask, and returns the file.
func requestsForALog(t *testing.T) string {
	t.Helper()
	address := free(t)
	g := prepare(t)
	log := filepath.Join(g.dir, "access.log")
	g.start(fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {path: %q}
ports: {web: {address: %q, protocol: http}}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    client_ip: {trusted: [127.0.0.1]}
    ip_filter: {deny: [203.0.113.12]}
    routes: [{fixed_response: {status: 204}}]
`, log, address))
	for _, rq := range [][3]string{
		{"203.0.113.9", "shop.example.com", "/.env"},
		{"203.0.113.10", "shop.example.com", `/%22,%22status%22:404,%22reason%22:%22no_route%22`}, // tries to be taken for another
		{"203.0.113.11", "shop.example.com", "/"},
		{"203.0.113.12", "shop.example.com", "/"},
		{"2001:db8::9", "shop.example.com", "/wp-login.php"},
	} {
		if r := askAll(address, wanted{method: "GET", host: rq[1], path: rq[2], header: http.Header{"X-Forwarded-For": {rq[0]}}}); r.err != nil {
			t.Fatal(r.err)
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(log)
		if err == nil && strings.Count(string(data), "\n") == 5 {
			return log
		}
		if time.Now().After(end) {
			t.Fatalf("the log has %q, %v", data, err)
		}
	}
}

// TestFail2banReadsTheLog holds the filter that is shipped, by Debian's fail2ban.
func TestFail2banReadsTheLog(t *testing.T) {
	program := needed(t, "fail2ban-regex", "fail2ban")
	out, err := exec.Command(program, "-v", requestsForALog(t), "../packaging/fail2ban/headgate.conf").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, client := range []string{"203.0.113.9", "203.0.113.12", "2001:db8::9"} {
		if !strings.Contains(string(out), "  "+client+"  ") {
			t.Errorf("%s is not found", client)
		}
	}
	if !strings.Contains(string(out), "5 lines, 0 ignored, 3 matched, 2 missed") || !strings.Contains(string(out), "[5] \"time\"") {
		t.Errorf("the filter finds others, or no dates")
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// TestCrowdSecReadsTheLog holds the parser that is shipped, by Debian's CrowdSec.
func TestCrowdSecReadsTheLog(t *testing.T) {
	log := requestsForALog(t)
	e := startEngine(t)
	dir := filepath.Dir(e.config)
	hub := "/usr/share/crowdsec/hub"
	if _, err := os.Stat(hub); err != nil {
		hub = filepath.Join(filepath.Dir(e.program), "../share/crowdsec/hub")
	}
	text, err := os.ReadFile(e.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.config, []byte(strings.ReplaceAll(string(text), dir+"/hub", hub)), 0o600); err != nil {
		t.Fatal(err)
	}
	patterns := "/etc/crowdsec/patterns"
	if _, err := os.Stat(patterns); err != nil {
		patterns = filepath.Join(filepath.Dir(e.program), "../../etc/crowdsec/patterns")
	}
	for to, from := range map[string]string{
		"parsers/s00-raw/syslog-logs.yaml":         hub + "/parsers/s00-raw/crowdsecurity/syslog-logs.yaml",
		"parsers/s01-parse/headgate.yaml":          "../packaging/crowdsec/headgate.yaml",
		"parsers/s02-enrich/dateparse-enrich.yaml": hub + "/parsers/s02-enrich/crowdsecurity/dateparse-enrich.yaml",
		"parsers/s02-enrich/http-logs.yaml":        hub + "/parsers/s02-enrich/crowdsecurity/http-logs.yaml",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "patterns"), os.DirFS(patterns)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(e.cscli, "-c", e.config, "explain", "-o", "human", "--file", log, "--type", "headgate", "-v")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(e.program)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"evt.Meta.source_ip : 203.0.113.9", "evt.Meta.source_ip : 2001:db8::9", "evt.Meta.http_path : /.env", "evt.Meta.http_status : 403", "evt.Meta.reason : address_denied", "evt.Meta.target_fqdn : shop.example.com"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(string(out), "parser success"); n != 5 {
		t.Errorf("%d lines are parsed, want 5", n)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
