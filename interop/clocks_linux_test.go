package interop

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// movedClock is the variable that movedBinary reads: seconds that the clock is ahead.
const movedClock = "HEADGATE_TEST_AHEAD"

// movedBinary builds headgate with a clock that a variable moves. What is built is headgate as it
// is, with two changes of package time: neither a library that is preloaded nor a time namespace
// moves the wall clock of a static program.
func movedBinary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const reading = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reading) != 1 {
		t.Fatal("time.Now of this version of Go is another one: change this test")
	}
	put := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(source, "time.go"): put("time.go", strings.Replace(string(text), reading, reading+"\tsec += ahead\n", 1)),
		filepath.Join(source, "ahead_unix.go"): put("ahead.go", `package time

import "syscall"

var ahead = func() int64 {
	text, _ := syscall.Getenv("`+movedClock+`")
	n, _ := atoi(text)
	return int64(n)
}()
`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "headgate")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-overlay", put("overlay.json", string(overlay)), "-o", binary, "./cmd/headgate")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build headgate with another clock: %v\n%s", err, out)
	}
	return binary
}

// TestClocksThatDiffer runs a pair and three machines with a database, of which one is three hours
// ahead and one three hours behind. Sessions, tokens and invitations of one are valid on all, for as long as they should be;
// no request fails, and no change is lost, also while the database is away.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	binary := movedBinary(t)
	t.Run("pair", func(t *testing.T) {
		t.Parallel()
		p := newSignInPair(t, func(w *twin) {
			w.binary = binary
			w.inside = append(w.inside, fmt.Sprintf("%s=%d", movedClock, map[string]int{"a": 3 * 3600, "b": -3 * 3600}[w.name]))
		})
		p.signIn(func() time.Time { return time.Now().Add(3 * time.Hour) })
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		clocksOfThree(t, binary)
	})
}

// clocksOfThree is the test of machines with a database.
func clocksOfThree(t *testing.T, binary string) {
	m := &machines{t: t, admin: true, cabled: true, binary: binary, ahead: []time.Duration{3 * time.Hour, -3 * time.Hour, 0}}
	m.open()
	a, b, c := m.all[0], m.all[1], m.all[2]
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range m.all {
		load.Go(func() { m.load(ctx, one) })
	}
	m.checkShared()

	m.eventually("the offsets of the clocks are listed", func() bool {
		found := 0
		for i, n := range m.nodes(c) {
			if d, err := time.ParseDuration(fmt.Sprint(n["clock_offset"])); err == nil && (d-m.ahead[i]).Abs() < time.Second {
				found++
			}
		}
		return found == 3
	})
	for _, n := range m.nodes(c) {
		if n["state"] != "ready" {
			t.Errorf("machine %v is %v: %v", n["name"], n["state"], n["reason"])
		}
	}

	a.manager().must(201, "POST", "/users", `{"name": "ann", "role": "admin", "password": "correct horse battery"}`, "")
	for _, from := range m.all {
		m.eventually(from.name+" knows the user", func() bool { return from.manager().ask("GET", "/users/ann", "", "").status == 200 })
		session, expires, status := from.signIn("correct horse battery")
		if left := time.Until(expires); status != 201 || left < 24*time.Hour-time.Minute || left%(24*time.Hour) > time.Minute && left%(24*time.Hour) < 24*time.Hour-time.Minute {
			t.Errorf("sign in at %s: %d, for %v", from.name, status, left)
		}
		token := from.token("of-"+from.name, time.Now().Add(time.Hour))
		short := from.token("short-"+from.name, time.Now().Add(2*time.Second))
		for _, at := range m.all {
			there := *session
			there.address = at.admin
			m.eventually("the session of "+from.name+" is valid on "+at.name, func() bool { s, _, _ := there.ask("GET", "/session", ""); return s == 200 })
			m.eventually("the token of "+from.name+" is valid on "+at.name, func() bool { return at.bearer(token) == 200 })
			m.eventually("the token of "+from.name+" ends on "+at.name, func() bool { return at.bearer(short) == 401 })
		}
	}
	for _, one := range m.all {
		m.change(one, 200)
	}
	m.confirm()
	m.freeze()
	m.away(0)
	m.kill()
	session, _, _ := b.signIn("correct horse battery")
	m.line.set(true)
	m.eventually("b is detached", func() bool { return strings.Contains(b.stored(), "detached since") })
	if status, _, _ := session.ask("GET", "/session", ""); status != 200 {
		t.Errorf("a session on a machine that is behind, without the database: %d", status)
	}
	m.line.set(false)
	m.recovers()
	stop()
	load.Wait()
	m.finish()
}

// confirm makes a change on each machine that waits to be confirmed: it is confirmed on another one, or
// reverted on all when the time is up, and not before.
func (m *machines) confirm() {
	m.t.Helper()
	const within = 10 * time.Second // the shortest
	for i, one := range m.all {
		n := m.changes + 1
		m.changes = n
		began := time.Now()
		one.manager().must(200, "PATCH", "/proxies/count?confirm_within="+within.String(), fmt.Sprintf(`{"routes": [{"fixed_response": {"status": 200, "body": "n%d"}}]}`, n), "*")
		serve := func(n int) {
			m.t.Helper()
			for _, at := range m.all {
				m.eventually(fmt.Sprintf("%s serves n%d", at.name, n), func() bool { return at.number() == n })
			}
		}
		serve(n)
		if i > 0 {
			m.eventually("the change is confirmed on another machine", func() bool { return m.all[0].manager().ask("POST", "/confirm", "{}", "").status == 200 })
			m.acked = n
			continue
		}
		for time.Since(began) < within-time.Second {
			for _, at := range m.all {
				if got := at.number(); got != n {
					m.t.Fatalf("%s serves n%d %v after a change that waits for %v", at.name, got, time.Since(began), within)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		serve(m.acked)
	}
	time.Sleep(within) // a machine that was not informed of the confirmation would revert
	for _, at := range m.all {
		if got := at.number(); got != m.acked {
			m.t.Errorf("%s serves n%d after the confirmation of n%d", at.name, got, m.acked)
		}
	}
}

// nodes returns the list of machines, in order of their names.
func (m *machines) nodes(on *machine) (all []map[string]any) {
	m.t.Helper()
	out := on.manager().must(200, "GET", "/nodes", "", "")
	for _, one := range out.body["items"].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}

// token makes a token of the API.
func (one *machine) token(name string, expires time.Time) string {
	one.t.Helper()
	out := one.manager().must(201, "POST", "/tokens", fmt.Sprintf(`{"name": %q, "role": "viewer", "expires": %q}`, name, expires.UTC().Format(time.RFC3339)), "")
	return fmt.Sprint(out.body["token"])
}

// bearer returns the status of a request with a token.
func (one *machine) bearer(token string) int {
	rq, err := http.NewRequest("GET", one.admin+"/api/v1/proxies", nil)
	if err != nil {
		one.t.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+token)
	rs, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(rq)
	if err != nil {
		return 0
	}
	rs.Body.Close()
	return rs.StatusCode
}
