package interop

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestJoinDatabaseByToken adds a machine to those that share a database, with nothing but a token.
// The database speaks TLS with a certificate of an authority of its own, which the machine gets
// besides the address and the key. A token is worth nothing a second time, under another name, to
// a machine that answers in the place of the one that issued it, and when many have been tried.
func TestJoinDatabaseByToken(t *testing.T) {
	t.Parallel()
	m := &machines{t: t, admin: true, secured: true, equip: func(one *machine) {
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(one.admin, "http://"))
		one.admin = "https://127.0.0.1:" + port
		one.inside = append(one.inside, "ADMIN=0.0.0.0:"+port)
	}}
	m.open()
	a := m.all[0]
	invite := func(name string) string {
		t.Helper()
		return fmt.Sprint(a.manager().must(201, "POST", "/pair/invitations", fmt.Sprintf(`{"name": %q, "address": %q}`, name, a.admin), "").body["token"])
	}
	join := func(token, name, state string, more ...string) (string, error) {
		cmd := exec.Command(os.Getenv(binaryFolder), append([]string{"node", "join", "--state", state, "--name", name}, more...)...)
		cmd.Stdin = strings.NewReader(token)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out := a.manager().ask("POST", "/pair/invitations", `{"name": "d"}`, ""); out.status != 400 || !strings.Contains(fmt.Sprint(out.body), "/address") {
		t.Errorf("an invitation without an address: %d %v", out.status, out.body)
	}
	if out := a.manager().ask("POST", "/pair/invitations", fmt.Sprintf(`{"name": "b", "address": %q}`, a.admin), ""); out.body["code"] != "exists" {
		t.Errorf("an invitation of a machine that runs: %d %v", out.status, out.body)
	}

	d := &machine{gate: prepare(t), name: "d", web: free(t), secure: free(t), client: a.client}
	d.inside = []string{"env", "WEB=" + d.web, "SECURE=" + d.secure, "ADMIN=" + free(t)}
	state := filepath.Join(d.dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	d.put(filepath.Join("state", "store.key"), "an older key\n")
	token := a.machine("node", "invite", "--name", "d", "--address", a.admin)
	token = token[strings.Index(token, "hgnode_"):]
	if out, err := join(token, "e", t.TempDir()); err == nil || !strings.Contains(out, "the token is for the machine d") {
		t.Errorf("another name: %v %s", err, out)
	}
	if out, err := join(elsewhere(t, token), "d", t.TempDir()); err == nil || !strings.Contains(out, "not the one that has issued the token") {
		t.Errorf("another machine answers: %v %s", err, out)
	}
	began := time.Now()
	out, err := join(token, "d", state)
	if err != nil || !strings.Contains(out, "Start headgate with --store @"+filepath.Join(state, "store")+" --node d") || !strings.Contains(out, "before-join-") {
		t.Fatalf("join: %v %s", err, out)
	}
	for name, secret := range map[string]bool{"store": true, "store.key": true, "store.sslrootcert": true} {
		info, err := os.Stat(filepath.Join(state, name))
		if err != nil || secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if again, err := join(token, "d", t.TempDir()); err == nil {
		t.Errorf("a used token: %s", again)
	}

	if text, err := os.ReadFile(filepath.Join(state, "store")); err != nil || !strings.Contains(string(text), url.QueryEscape(filepath.Join(state, "store.sslrootcert"))) {
		t.Errorf("the address of the database: %s, %v", text, err)
	}
	d.flags = []string{"--store", "@" + filepath.Join(state, "store"), "--node", "d"}
	d.start(m.config())
	d.up.Store(true)
	t.Logf("a machine has joined and serves %v after it was started with the token", time.Since(began).Round(time.Millisecond))
	m.all = append(m.all, d)
	m.change(a, 200)
	m.change(d, 200)
	audit := fmt.Sprint(a.manager().must(200, "GET", "/audit?limit=1000", "", "").body)
	for _, action := range []string{"node.invite", "node.join"} {
		if !strings.Contains(audit, action) {
			t.Errorf("the audit log has no %s", action)
		}
	}

	token = invite("")
	var joined atomic.Int64
	var both sync.WaitGroup
	for _, name := range []string{"g", "h"} {
		both.Go(func() {
			if _, err := join(token, name, t.TempDir()); err == nil {
				joined.Add(1)
			}
		})
	}
	both.Wait()
	if joined.Load() != 1 {
		t.Errorf("%d machines have joined with one token", joined.Load())
	}
	token = invite("i")
	throttled := false
	for range 12 {
		out, _ := join(token, "wrong", t.TempDir())
		throttled = throttled || strings.Contains(out, "too many requests")
	}
	if out, err := join(token, "i", t.TempDir()); err == nil || !throttled {
		t.Errorf("after many requests that were refused: %v %s", err, out)
	}
}

// elsewhere returns a token that leads to another server.
func elsewhere(t *testing.T, token string) string {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(token), "hgnode_"))
	var fields map[string]any
	if err != nil || json.Unmarshal(data, &fields) != nil {
		t.Fatalf("the token: %v %s", err, data)
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	fields["address"] = s.URL
	data, err = json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return "hgnode_" + base64.RawURLEncoding.EncodeToString(data)
}
