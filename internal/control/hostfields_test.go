package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// siteText is a configuration that sends the files of a folder, with an access log, a command
// and something that reaches for nothing.
func siteText(root, log, command string, n int) string {
	return fmt.Sprintf(`version: 1
policies:
  p:
    request_body_limit: %dMiB
access_log: {path: %q}
acme:
  own:
    directory: https://127.0.0.1:1/directory
    challenge: dns-01
    dns: {provider: exec, command: %q}
    domains: [a.example.com]
proxies:
  site:
    virtual_hosts: [site.example.com]
    routes: [{files: {root: %q}}]
  plain:
    virtual_hosts: [plain.example.com]
    routes: [{fixed_response: {status: 204}}]
`, n, log, command, root)
}

// uses waits until a machine uses or withholds the site, and returns its configuration.
func (m *member) uses(want bool) *config.Config {
	m.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); testhouse.Pause() {
		if p := m.c.Plan(); p != nil && p.Config().Proxies["site"] != nil && p.Config().Proxies["site"].Routes[0].Withheld != want {
			return p.Config()
		}
	}
	m.t.Fatalf("%s: that the site is used is not %v; issues: %q", m.name, want, m.c.Issues("proxies"))
	return nil
}

func wantsOf(c *config.Config) int {
	_, wants := c.ACMEWants(func(string) bool { return false })
	return len(wants)
}

// What another machine sets runs no command, sends no files and writes to no path, until the
// machine itself allows it.
func TestAMachineUsesNoPathsOfOthersWithoutItsPermission(t *testing.T) {
	e, dir := newEngine(), t.TempDir()
	log := filepath.Join(dir, "access.log")
	text := siteText(dir, log, "/bin/false", 1)
	a := newMember(t, "a", text, e)
	own := a.uses(true)
	if n := wantsOf(own); n != 1 {
		t.Errorf("the machine whose file it is wants %d certificates, want 1", n)
	}
	if err := os.Remove(log); err != nil {
		t.Error("it has no access log: ", err)
	}
	b := newMember(t, "b", "", e)
	b.serves(text)
	cfg := b.uses(false)
	for end := time.Now().Add(30 * time.Second); len(b.c.Issues("proxies")["site"]) == 0 && time.Now().Before(end); testhouse.Pause() {
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("the access log was opened")
	}
	if n := wantsOf(cfg); n != 0 {
		t.Errorf("it wants %d certificates by a command that it does not allow", n)
	}
	if cfg.Proxies["plain"].Routes[0].Withheld || cfg.Policies["p"] == nil {
		t.Error("the rest of the configuration is not used")
	}
	if w := cfg.Documents().Proxies["site"]; w.Routes[0].Files == nil || cfg.Proxies["site"].Written() != w {
		t.Error("the proxy is not shown as it is defined")
	}
	if issues := b.c.Issues("proxies")["site"]; len(issues) != 1 || !strings.Contains(issues[0], AllowHostFields) || !strings.Contains(issues[0], dir) {
		t.Errorf("the issues are %q", issues)
	}
	n := b.c.node()
	for _, field := range []string{"acme.own.dns.command", "access_log.path", "proxies.site.routes[0].files.root"} {
		if !slices.ContainsFunc(n.Problems, func(p string) bool { return strings.Contains(p, field) }) {
			t.Errorf("the problems that the other machines see lack %s: %q", field, n.Problems)
		}
	}

	b.stop()
	b.start()
	b.uses(false)
	edited := siteText(dir, log, "/bin/false", 2)
	b.write(edited) // by hand, and something else
	a.serves(edited)
	b.serves(edited)
	b.uses(false)
	a.uses(true)

	allow := filepath.Join(b.dir, "state", AllowHostFields)
	if err := os.WriteFile(allow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := wantsOf(b.uses(true)); n != 1 {
		t.Errorf("it wants %d certificates, want 1", n)
	}
	if _, err := os.Stat(log); err != nil {
		t.Error("the access log was not opened: ", err)
	}
	for end := time.Now().Add(30 * time.Second); len(b.c.Issues("proxies")["site"]) != 0; testhouse.Pause() { // published after the change
		if time.Now().After(end) {
			t.Fatalf("the issues are %q", b.c.Issues("proxies")["site"])
		}
	}
	if err := os.Remove(allow); err != nil {
		t.Fatal(err)
	}
	b.uses(false)
	if got := len(b.c.Revisions(0, 100)); got != len(a.c.Revisions(0, 100)) {
		t.Errorf("there are %d revisions on b, and %d on a", got, len(a.c.Revisions(0, 100)))
	}
}

// A value that is written on a machine is its own, by hand or by a command on it, and that of no
// other. Whoever has the key of the shared store can make a session: the API may not set one.
func TestWhatIsSetOnAMachineIsUsedThere(t *testing.T) {
	e, one, two, three := newEngine(), t.TempDir(), t.TempDir(), t.TempDir()
	text := siteText(one, "stdout", "/bin/false", 1)
	a := newMember(t, "a", text, e)
	b := newMember(t, "b", text, e) // an operator has put the same file there
	a.uses(true)
	if n := wantsOf(b.uses(true)); n != 1 {
		t.Errorf("b wants %d certificates, want 1", n)
	}
	text = siteText(two, "stdout", "/bin/false", 1)
	b.write(text)
	a.serves(text)
	a.uses(false)
	b.uses(true)
	text = siteText(three, "stdout", "/bin/false", 1)
	if err := a.edit(text); err == nil || !strings.Contains(err.Error(), "proxies.site.routes[0].files.root") || !strings.Contains(err.Error(), AllowHostFields) {
		t.Fatalf("a client of the API has set a folder: %v", err)
	}
	if err := a.editBy(ViaCLI, text); err != nil {
		t.Fatal(err)
	}
	b.serves(text)
	a.uses(true)
	b.uses(false)
	for _, m := range []*member{a, b} {
		m.stop()
		m.start()
	}
	a.uses(true)
	b.uses(false)
}

// A value of another machine in an object that cannot be left out is refused.
func TestAPathOfAnotherMachineThatCannotBeLeftOutIsRefused(t *testing.T) {
	e := newEngine()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	b.serves(limitOf(1))
	text := limitOf(1) + "ports:\n  web: {address: \"127.0.0.1:0\", protocol: http, active: false, description: \"${file:" + file + "}\"}\n"
	text = strings.Replace(text, "127.0.0.1:0", "127.0.0.1:18080", 1)
	refused := func(m *member) {
		t.Helper()
		testhouse.Eventually(t, "the change is refused on "+m.name, func() bool {
			r := m.c.Status().Refused
			return r != nil && strings.Contains(r.Problems[0], "ports.web.description") && strings.Contains(r.Problems[0], AllowHostFields)
		})
		if m.c.Plan().Config().Ports["web"] != nil {
			t.Errorf("the change is used on %s", m.name)
		}
	}
	a.write(text)
	refused(a) // b is asked before it is saved
	b.stop()   // it is not asked
	text += "# once more\n"
	a.write(text)
	a.serves(text)
	b.start()
	refused(b)
	a.serves(text) // and not what b has in its files
	if all := a.c.Revisions(0, 1); all[0].Node != "a" {
		t.Errorf("the newest revision is of %s: %+v", all[0].Node, all[0])
	}
	if err := os.WriteFile(filepath.Join(b.dir, "state", AllowHostFields), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.serves(text)
}

// What a machine had begun to write when it was killed is no edit of a person.
func TestFilesThatWereHalfWrittenAreNoEdit(t *testing.T) {
	e := newEngine()
	a, b := newMember(t, "a", siteText("/srv/one", "stdout", "/bin/false", 1), e), newMember(t, "b", "", e)
	b.uses(false)
	text := siteText("/srv/two", "stdout", "/bin/false", 1)
	a.write(text)
	b.serves(text)
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	wrote := b.c.readApplied()
	if wrote.Next != nil || wrote.Revision < 2 {
		t.Fatalf("it has noted %+v", wrote)
	}
	docs, err := b.c.kept(wrote.Revision - 1)
	if err != nil {
		t.Fatal(err)
	}
	before := appliedState{Revision: wrote.Revision - 1, Documents: map[string]history.Digest{}}
	for _, d := range docs.List {
		before.Documents[filepath.Base(d.Name)] = history.DigestOf(d.Data)
	}
	for _, next := range []*appliedState{nil, &wrote} {
		before.Next = next
		if err := b.c.writeApplied(before); err != nil {
			t.Fatal(err)
		}
		keys, known := b.c.appliedHostFieldsLocked()
		if !known || !keys["files /srv/one"] || keys["files /srv/two"] != (next != nil) {
			t.Errorf("with %+v, it has written %v, %v", next, keys, known)
		}
	}
	wrote.Documents = map[string]history.Digest{filepath.Base(b.file): history.DigestOf([]byte("other"))}
	if err := b.c.writeApplied(before); err != nil {
		t.Fatal(err)
	}
	if keys, known := b.c.appliedHostFieldsLocked(); known {
		t.Errorf("for a revision that is another one now, it has written %v", keys)
	}
}
