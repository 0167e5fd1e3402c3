package interop

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// operator is a person at the console of a machine: the cookie and the second secret of a
// session.
type operator struct {
	t              *testing.T
	address        string // URL of the management listener
	cookie, secret string
}

// ask sends a request of the console, and returns the status, the body and Retry-After.
func (o *operator) ask(method, path, body string) (status int, out map[string]any, retry string) {
	o.t.Helper()
	rq, err := http.NewRequest(method, o.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("If-Match", "*")
	if o.cookie != "" {
		rq.Header.Set("Cookie", "__Host-headgate="+o.cookie)
		rq.Header.Set("Headgate-Session", o.secret)
	}
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	rs, err := (&http.Client{Timeout: patience, Transport: tr}).Do(rq)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	if len(data) > 0 && json.Unmarshal(data, &out) != nil {
		o.t.Fatalf("%s %s: %d %s", method, path, rs.StatusCode, data)
	}
	for _, c := range rs.Cookies() {
		if c.Name == "__Host-headgate" && c.Value != "" {
			o.cookie, o.secret = c.Value, fmt.Sprint(out["secret"])
		}
	}
	return rs.StatusCode, out, rs.Header.Get("Retry-After")
}

// signIn starts a session, and returns when it ends.
func (one *machine) signIn(password string) (*operator, time.Time, int) {
	one.t.Helper()
	o := &operator{t: one.t, address: one.admin}
	status, out, _ := o.ask("POST", "/session", `{"user": "ann", "password": "`+password+`"}`)
	expires, _ := time.Parse(time.RFC3339, fmt.Sprint(out["expires"]))
	return o, expires, status
}

// TestDetachedMachine cuts the connection to the database. The sessions of operators go on, a
// new one is of that machine and for an hour, changes are refused at once, and the audit log
// has what happened meanwhile once and in order, also if the machine is killed.
func TestDetachedMachine(t *testing.T) {
	t.Parallel()
	m := &machines{t: t, cabled: true, admin: true}
	m.open()
	a, b := m.all[0], m.all[1]
	a.manager().must(201, "POST", "/users", `{"name": "ann", "role": "admin", "password": "correct horse battery"}`, "")
	m.eventually("b knows the user", func() bool { return b.manager().ask("GET", "/users/ann", "", "").status == 200 })
	before, expires, status := b.signIn("correct horse battery")
	if status != 201 || time.Until(expires) < 24*time.Hour {
		t.Fatalf("sign in: %d, until %v", status, expires)
	}

	m.line.set(true)
	m.eventually("b is detached", func() bool { return strings.Contains(b.stored(), "detached since") })
	if status, _, _ := before.ask("GET", "/proxies/count", ""); status != 200 {
		t.Errorf("a session that is there: %d", status)
	}
	here, expires, status := b.signIn("correct horse battery")
	if d := time.Until(expires); status != 201 || d > time.Hour || d < 50*time.Minute {
		t.Fatalf("sign in while the database is away: %d, for %v", status, d)
	}
	if _, _, status := b.signIn("wrong horse battery"); status != 401 {
		t.Errorf("a wrong password while the database is away: %d", status)
	}
	for _, who := range []*operator{before, here} {
		began := time.Now()
		status, out, retry := who.ask("PATCH", "/proxies/count", `{"description": "detached"}`)
		took := time.Since(began)
		if status != 503 || out["code"] != "store_unavailable" || retry == "" || took > time.Second {
			t.Errorf("a change while the database is away: %d %v, Retry-After %q, in %v", status, out, retry, took)
		}
		t.Logf("a change is refused in %v: %v", took.Round(time.Millisecond), out["detail"])
		if status, _, _ := who.ask("GET", "/proxies", ""); status != 200 {
			t.Errorf("reading while the database is away: %d", status)
		}
	}
	elsewhere := *here
	elsewhere.address = a.admin
	if status, _, _ := elsewhere.ask("GET", "/session", ""); status != 401 {
		t.Errorf("the session of b on a: %d", status)
	}

	second, _, _ := b.signIn("correct horse battery")
	if status, _, _ := second.ask("DELETE", "/session", ""); status != 204 {
		t.Errorf("sign out while the database is away: %d", status)
	}
	if status, _, _ := second.ask("GET", "/session", ""); status != 401 {
		t.Errorf("after it has signed out: %d", status)
	}
	b.kill()
	b.restart()
	if status, _, _ := here.ask("GET", "/session", ""); status != 401 {
		t.Errorf("a session in memory after a restart: %d", status)
	}
	if status, _, _ := before.ask("GET", "/session", ""); status != 200 {
		t.Errorf("a session of before, after a restart: %d", status)
	}
	third, _, _ := b.signIn("correct horse battery")

	m.line.set(false)
	want := []string{"session.sign_in", "session.sign_in", "session.sign_in", "session.sign_out", "session.sign_in"}
	var got []string
	m.eventually("the audit log has all", func() bool { got = m.audit(a, "session."); return len(got) >= len(want) })
	if m.recovers(); !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(b.state(), "audit-waiting")); !os.IsNotExist(err) {
		t.Errorf("the file of waiting records is left: %v", err)
	}
	if status, out, _ := third.ask("PATCH", "/proxies/hand", `{"description": "attached"}`); status != 200 {
		t.Errorf("a change in the session of b after the return: %d %v", status, out)
	}
	if got = m.audit(a, "session."); !slices.Equal(got, want) {
		t.Errorf("the audit log has %q at last, want %q", got, want)
	}
	m.hasEvent("store.away", "node b cannot reach the shared store")
	m.hasEvent("store.returned", "node b follows the shared store again")
	m.serveAll(m.acked)
	m.finish()
}

// audit returns the actions in the audit log that begin with a prefix, from the oldest.
func (m *machines) audit(one *machine, prefix string) (all []string) {
	out := one.manager().ask("GET", "/audit?action="+prefix+"&limit=100", "", "")
	items, _ := out.body["items"].([]any)
	for _, item := range slices.Backward(items) {
		all = append(all, fmt.Sprint(item.(map[string]any)["action"]))
	}
	return all
}

// TestFollowerWithoutItsLeader is the same for a pair: an operator signs in at the follower,
// which could be promoted now, while the leader cannot be reached.
func TestFollowerWithoutItsLeader(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.b.is("follower", true)
	p.a.manager().must(201, "POST", "/users", `{"name": "ann", "role": "admin", "password": "correct horse battery"}`, "")
	p.eventually("b knows the user", func() bool { return p.b.manager().ask("GET", "/users/ann", "", "").status == 200 })
	p.a.cable.set(true)
	p.b.is("follower", false)
	here, expires, status := p.b.machine.signIn("correct horse battery")
	if d := time.Until(expires); status != 201 || d > time.Hour || d < 50*time.Minute {
		t.Fatalf("sign in while the leader is away: %d, for %v", status, d)
	}
	if status, out, _ := here.ask("PATCH", "/proxies/count", `{"description": "x"}`); status != 409 || out["code"] != "not_leader" {
		t.Errorf("a change at the follower: %d %v", status, out)
	}
	p.a.cable.set(false)
	p.b.is("follower", true)
	p.eventually("the leader has the record", func() bool { return len(p.audit(p.a.machine, "session.")) > 0 })
	p.must(p.a, 1)
	p.serves(p.b, 1)
	if got := p.audit(p.a.machine, "session."); !slices.Equal(got, []string{"session.sign_in"}) {
		t.Errorf("the audit log of the leader has %q", got)
	}
}
