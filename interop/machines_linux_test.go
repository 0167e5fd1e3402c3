package interop

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// machinesRounds is how often TestMachines disturbs its machines: once for each way in the
// usual run, more often for numbers.
var machinesRounds = flag.Int("machines", 1, "how often TestMachines goes through its disturbances")

// machines are headgates with one PostgreSQL, under load.
type machines struct {
	t    *testing.T
	db   *database
	url  string
	all  []*machine
	app  string
	serv *http.Server

	cabled  bool            // the machines reach the database through line
	line    *cable          // nil without
	admin   bool            // each has a management listener
	binary  string          // of the machines; "" is headgate
	ahead   []time.Duration // of the clock of each, by binary; nil is not
	secured bool            // the database speaks TLS, with a certificate of an authority
	ca      string          // the file with that
	equip   func(*machine)  // gives each what it needs besides; nil gives nothing
	more    func() string   // what the configuration has besides; nil is nothing

	changes, refused, unknown int // that were requested, and how they ended
	acked                     int // the number in the last change that was acknowledged
	delays                    []time.Duration
	commits                   []time.Duration
	served, failed            atomic.Int64
	failures                  sync.Map
}

// machine is one of them.
type machine struct {
	*gate
	name        string
	web, secure string // addresses
	admin       string // URL of the management listener, if it has one
	up          atomic.Bool
	client      *http.Client
}

// TestMachines runs three headgates and a PostgreSQL under load while the database is
// stopped and frozen, machines are killed, and files are edited by hand. No request to a
// machine that runs fails, no change that was acknowledged is lost, and in the end all serve
// the same.
func TestMachines(t *testing.T) {
	t.Parallel()
	m := &machines{t: t}
	m.open()
	m.checkShared()

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range m.all {
		for range 4 {
			load.Go(func() { m.load(ctx, one) })
		}
	}
	for round := range *machinesRounds {
		for range 10 {
			m.change(m.all[m.changes%3], 200)
		}
		m.freeze()
		m.away(round)
		m.kill()
	}
	stop()
	load.Wait()
	m.finish()
}

// open moves the state of the first machine to the database, and starts all.
func (m *machines) open() {
	t := m.t
	at := free(t)
	m.db = postgres(t, at)
	if m.cabled {
		m.line = newCable(t, at)
		at = m.line.address
	}
	m.url = fmt.Sprintf("postgres://tester@%s/postgres?sslmode=disable", at)
	if m.secured {
		m.ca = m.db.secure()
		m.url = fmt.Sprintf("postgres://tester@%s/postgres?sslmode=verify-full&sslrootcert=%s", at, m.ca)
	}
	var served atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.serv = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		fmt.Fprint(w, served.Add(1))
	})}
	go m.serv.Serve(l)
	t.Cleanup(func() { m.serv.Close() })
	m.app = l.Addr().String()
	for i, name := range []string{"a", "b", "c"} {
		one := &machine{gate: prepare(t), name: name, web: free(t), secure: free(t)}
		one.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
		one.inside = []string{"env", "WEB=" + one.web, "SECURE=" + one.secure}
		if one.binary = m.binary; m.ahead != nil {
			one.inside = append(one.inside, fmt.Sprintf("%s=%d", movedClock, int(m.ahead[i].Seconds())))
		}
		if m.admin {
			at := free(t)
			one.admin = "http://" + at
			one.inside = append(one.inside, "ADMIN="+at)
		}
		if m.equip != nil {
			m.equip(one)
		}
		one.flags = []string{"--store", m.url, "--node", name}
		if err := os.Mkdir(filepath.Join(one.dir, "state"), 0o700); err != nil {
			t.Fatal(err)
		}
		m.all = append(m.all, one)
	}
	a := m.all[0]
	m.command(0, "store", "move", "--state", filepath.Join(a.dir, "state"), "--store", m.url)
	key, err := os.ReadFile(filepath.Join(a.dir, "state", "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range m.all {
		if i > 0 {
			one.put(filepath.Join("state", "store.key"), string(key))
		}
		one.start(m.config())
		one.up.Store(true)
	}
}

// command runs headgate and returns what it prints.
func (m *machines) command(want int, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(os.Getenv(binaryFolder), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		m.t.Fatalf("headgate %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *machines) config() string {
	admin := ""
	if m.admin {
		admin = "${ADMIN}"
	}
	more := ""
	if m.more != nil {
		more = m.more()
	}
	return fmt.Sprintf(`version: 1
admin: {address: "%s"}
access_log: {enabled: false}
ports:
  web: {address: "${WEB}", protocol: http}
  secure: {address: "${SECURE}", protocol: https}
proxies:
  count: {virtual_hosts: [count.example.com], routes: [{fixed_response: {status: 200, body: "n0"}}]}
  hand: {description: "h0", virtual_hosts: [hand.example.com], routes: [{fixed_response: {status: 200}}]}
  shop: {virtual_hosts: [shop.example.com], cache: {}, routes: [{servers: [{url: "http://%s"}]}]}
%s`, admin, m.app, more)
}

// get requests a host of a machine.
func (one *machine) get(host, path string) (string, error) {
	rq, err := http.NewRequest(http.MethodGet, "http://"+one.web+path, nil)
	if err != nil {
		return "", err
	}
	rq.Host = host
	rs, err := one.client.Do(rq)
	if err != nil {
		return "", err
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err == nil && rs.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", rs.Status, data)
	}
	return string(data), err
}

// number returns the number in what a machine serves.
func (one *machine) number() int {
	text, err := one.get("count.example.com", "/")
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "n"))
	if err != nil {
		return -1
	}
	return n
}

// load requests a machine again and again while it runs.
func (m *machines) load(ctx context.Context, one *machine) {
	for ctx.Err() == nil {
		if !one.up.Load() {
			pause()
			continue
		}
		_, err := one.get("shop.example.com", "/load")
		if err != nil && !one.up.Load() {
			continue // it was killed meanwhile
		}
		m.served.Add(1)
		if err != nil {
			m.failed.Add(1)
			m.failures.Store(one.name+": "+err.Error(), true)
		}
		pause()
	}
}

// pause is between two looks, or two requests of a client.
func pause() { time.Sleep(5 * time.Millisecond) }

// change counts up on a machine, and waits for all that run if it is acknowledged. Want is
// the status, 0 for any.
func (m *machines) change(one *machine, want int) int {
	m.t.Helper()
	m.changes++
	body := fmt.Sprintf(`{"routes": [{"fixed_response": {"status": 200, "body": "n%d"}}]}`, m.changes)
	began := time.Now()
	out := one.manager().ask("PATCH", "/proxies/count", body, "*")
	switch {
	case out.err == nil && out.status == 200:
		m.acked = m.changes
		m.commits = append(m.commits, time.Since(began))
		began = time.Now()
		for _, other := range m.all {
			if other != one && other.up.Load() {
				m.eventually(fmt.Sprintf("%s serves n%d", other.name, m.acked), func() bool { return other.number() >= m.acked })
				m.delays = append(m.delays, time.Since(began))
			}
		}
	case out.err == nil && out.status == 503:
		m.refused++
	default:
		m.unknown++
	}
	if want != 0 && out.status != want {
		m.t.Fatalf("a change on %s: %d %v, %v; want %d", one.name, out.status, out.body, out.err, want)
	}
	return out.status
}

// eventually is the test's, with short pauses: it measures.
func (m *machines) eventually(what string, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); pause() {
		if is() {
			return
		}
	}
	m.t.Fatalf("not in %v: %s", patience, what)
}

// checkShared holds what machines have in common besides the configuration.
func (m *machines) checkShared() {
	t, a, b := m.t, m.all[0], m.all[1]
	list := m.command(0, "node", "list", "--state", filepath.Join(a.dir, "state"), "--store", m.url)
	for _, one := range m.all {
		if !regexp.MustCompile(`(?m)^` + one.name + ` +version `).MatchString(list) {
			m.eventually(one.name+" is listed", func() bool {
				return strings.Contains(m.command(0, "node", "list", "--state", filepath.Join(a.dir, "state"), "--store", m.url), one.name+" ")
			})
		}
	}

	if found := b.manager().must(200, "GET", "/store/check", "", "").body; found["primary"] != true || found["revision"].(float64) < 2 || !strings.HasPrefix(fmt.Sprint(found["server"]), "1") || strings.Contains(fmt.Sprint(found["warnings"]), "fsync is off") == false {
		t.Errorf("GET /store/check: %v", found)
	}

	for _, command := range []string{"check", "status"} {
		if text := b.gate.command("store", command, "--config", b.file); !strings.Contains(text, "warning   fsync is off") {
			t.Errorf("headgate store %s prints %q", command, text)
		}
	}

	stored, err := b.get("shop.example.com", "/purged")
	if again, _ := b.get("shop.example.com", "/purged"); err != nil || again != stored {
		t.Fatalf("not stored: %q, then %q, %v", stored, again, err)
	}
	a.manager().must(200, "POST", "/cache/purge", `{"all": true}`, "")
	m.eventually("the purge acts on b", func() bool {
		now, err := b.get("shop.example.com", "/purged")
		return err == nil && now != stored
	})

	client := &tls.Config{InsecureSkipVerify: true, ServerName: "shop.example.com", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	resumed := func(address string) bool {
		c, err := tls.Dial("tcp", address, client)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n")
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().DidResume
	}
	resumed(a.secure)
	m.eventually("b resumes the session of a", func() bool { return resumed(b.secure) })
}

// freeze stops all processes of the database without an end: changes are refused, and are
// accepted when it goes on.
func (m *machines) freeze() {
	m.t.Helper()
	signal := func(s syscall.Signal) {
		pids, err := exec.Command("ps", "-o", "pid=", "--ppid", fmt.Sprint(m.db.server.Process.Pid)).Output()
		if err != nil {
			m.t.Fatal(err)
		}
		for _, field := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, s) // one that has ended is as good as frozen
			}
		}
		m.db.server.Process.Signal(s)
	}
	signal(syscall.SIGSTOP)
	status := m.change(m.all[0], 0)
	signal(syscall.SIGCONT)
	if status == 200 {
		m.t.Error("a change was acknowledged while the database was frozen")
	}
	m.recovers()
}

// recovers waits until changes are accepted again.
func (m *machines) recovers() {
	m.t.Helper()
	m.eventually("changes are accepted again", func() bool { return m.change(m.all[0], 0) == 200 })
}

// away stops the database. A machine starts without it, and an edit by hand waits for it.
func (m *machines) away(round int) {
	t, b, c := m.t, m.all[1], m.all[2]
	t.Helper()
	m.db.stop()
	m.eventually("a change is refused at once", func() bool { return m.change(m.all[0], 0) == 503 })
	c.up.Store(false)
	c.stop()
	began := time.Now()
	c.restart()
	t.Logf("the start without the database took %v", time.Since(began).Round(time.Millisecond))
	c.up.Store(true)
	if n := c.number(); n != m.acked {
		t.Errorf("without the database, c serves n%d after its start; want n%d", n, m.acked)
	}

	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	hand := fmt.Sprintf("h%d", round+1)
	b.put("headgate.yaml", regexp.MustCompile(`\bh[0-9]+\b`).ReplaceAllString(string(text), hand))
	m.eventually("the edit is refused", func() bool {
		var s struct{ Refused *json.RawMessage }
		return b.status("", &s) == nil && s.Refused != nil
	})
	m.db.start()
	m.eventually("the edit by hand is saved", func() bool {
		return slices.IndexFunc(m.all, func(one *machine) bool {
			data, err := os.ReadFile(one.file)
			return err != nil || !strings.Contains(string(data), hand)
		}) < 0
	})
	m.recovers()
}

// restart starts a machine on what it has.
func (one *machine) restart() {
	one.t.Helper()
	text, err := os.ReadFile(one.file)
	if err != nil {
		one.t.Fatal(err)
	}
	one.start(string(text))
}

// kill ends a machine in the middle of a change of its own.
func (m *machines) kill() {
	m.t.Helper()
	c := m.all[2]
	c.up.Store(false)
	done := make(chan int, 1)
	asked := c.manager()
	m.changes++
	body := fmt.Sprintf(`{"routes": [{"fixed_response": {"status": 200, "body": "n%d"}}]}`, m.changes)
	number := m.changes
	go func() { done <- asked.ask("PATCH", "/proxies/count", body, "*").status }()
	pause()
	c.kill()
	if <-done == 200 {
		m.acked = number
	} else {
		m.unknown++
	}
	c.restart()
	c.up.Store(true)
	m.recovers()
}

// finish compares the machines, and reports.
func (m *machines) finish() {
	t := m.t
	m.change(m.all[1], 200)
	var texts []string
	for _, one := range m.all {
		if n := one.number(); n != m.acked {
			t.Errorf("%s serves n%d; the last change that was acknowledged is n%d", one.name, n, m.acked)
		}
		data, err := os.ReadFile(one.file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	if len(slices.Compact(texts)) != 1 {
		t.Errorf("the machines have different files in the end:\n%s", strings.Join(texts, "\n"))
	}
	if n := m.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests to machines that run failed", n, m.served.Load())
		m.failures.Range(func(text, _ any) bool { t.Log(text); return true })
	}
	t.Logf("%d requests, %d failed; %d changes: %d acknowledged, %d refused, %d without an answer", m.served.Load(), m.failed.Load(), m.changes, len(m.commits), m.refused, m.unknown)
	t.Logf("a change took %v (p50), %v (p99); until the others served it %v (p50), %v (p99)", percentile(m.commits, 50), percentile(m.commits, 99), percentile(m.delays, 50), percentile(m.delays, 99))
}

func percentile(all []time.Duration, p int) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[(len(all)-1)*p/100].Round(10 * time.Microsecond)
}
