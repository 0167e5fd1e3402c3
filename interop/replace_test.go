//go:build linux

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// upgradesVariable is how many upgrades in a row are made under load; three by default.
const upgradesVariable = "HEADGATE_UPGRADES"

// upgradesInARow returns how many upgrades a test makes.
func upgradesInARow(usual int) int {
	if n, err := strconv.Atoi(os.Getenv(upgradesVariable)); err == nil {
		return n
	}
	return usual
}

// replaced is a gate whose process is replaced by others. Its binary is a copy, so that
// tests can put something else in its place.
type replaced struct {
	*gate
	binary     string
	pid        int
	supervisor *supervisor
}

// supervisor is a service manager as far as it reads notifications. All are read: a process
// whose notifications are not waits for them, and the queue holds a few only.
type supervisor struct {
	*record
	main atomic.Pointer[func(pid int)] // see atMain
}

// atMain has f called once, when a process makes another the main one of the service. That
// process waits meanwhile.
func (m *supervisor) atMain(f func(pid int)) { m.main.Store(&f) }

// startSupervisor reads the notifications sent to an address until the test ends.
func startSupervisor(t *testing.T) (m *supervisor, address string) {
	t.Helper()
	at := &net.UnixAddr{Name: filepath.Join(shortDir(t), "s"), Net: "unixgram"}
	c, err := net.ListenUnixgram("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m = &supervisor{record: &record{}}
	go func() {
		b, oob := make([]byte, 4<<10), make([]byte, 1<<10)
		for {
			n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
			if err != nil {
				return
			}
			var pid int
			if _, err := fmt.Sscanf(string(b[:n]), "MAINPID=%d", &pid); err == nil {
				if f := m.main.Swap(nil); f != nil {
					(*f)(pid)
				}
			}
			closeRights(oob[:oobn])
			fmt.Fprintf(m, "%s\n", b[:n])
		}
	}()
	return m, at.Name
}

// closeRights closes the descriptors of a message: that is what a barrier waits for.
func closeRights(oob []byte) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range messages {
		fds, _ := syscall.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			syscall.Close(fd)
		}
	}
}

// upgradeState is what the API shows of upgrades.
type upgradeState struct {
	PID        int    `json:"pid"`
	Running    bool   `json:"in_progress"`
	Version    string `json:"version"`
	Generation int    `json:"generation"`
	Previous   *struct {
		PID         int `json:"pid"`
		Connections int `json:"connections"`
	} `json:"previous"`
}

// startReplaced runs a copy of headgate with a configuration.
func startReplaced(t *testing.T, g *gate, config string) *replaced {
	t.Helper()
	r := prepareReplaced(t, g, config)
	r.run()
	return r
}

// prepareReplaced puts a copy of headgate and a configuration in place.
func prepareReplaced(t *testing.T, g *gate, config string) *replaced {
	t.Helper()
	r := &replaced{gate: g, binary: filepath.Join(g.dir, "headgate")}
	r.install("")
	var notify string
	r.supervisor, notify = startSupervisor(t)
	g.put("headgate.yaml", config)
	t.Setenv("NOTIFY_SOCKET", notify)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of headgate:\n%s", r.logged())
		}
	})
	return r
}

// run starts the binary as a service manager would, and returns when it serves.
func (r *replaced) run() {
	r.t.Helper()
	r.cmd = exec.Command(r.binary, "run", "--config", r.file, "--state", filepath.Join(r.dir, "state"))
	r.launch()
}

// launch starts the command of the gate, and returns when headgate serves.
func (r *replaced) launch() {
	r.t.Helper()
	// Files and not pipes: new processes have them, too, and Wait waits for no copying.
	log, err := os.OpenFile(filepath.Join(r.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	r.cmd.Stdout, r.cmd.Stderr = log, log
	served := strings.Count(r.supervisor.String(), "READY=1\n")
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	cmd := r.cmd
	go cmd.Wait() // it ends when it was replaced
	r.pid = cmd.Process.Pid
	r.t.Cleanup(func() { syscall.Kill(r.pid, syscall.SIGKILL) })
	eventually(r.t, "headgate serves", func() bool { return strings.Count(r.supervisor.String(), "READY=1\n") > served })
}

// logged returns what the processes have written.
func (r *replaced) logged() string {
	b, _ := os.ReadFile(filepath.Join(r.dir, "log"))
	return string(b)
}

// install puts a binary in place: headgate, or a script that $REAL in it stands for
// headgate.
func (r *replaced) install(script string) {
	r.t.Helper()
	from := os.Getenv(binaryFolder)
	if script == "" {
		data, err := os.ReadFile(from)
		if err != nil {
			r.t.Fatal(err)
		}
		script = string(data)
	} else {
		script = "#!/bin/sh\n" + strings.ReplaceAll(script, "$REAL", from) + "\n"
	}
	if err := os.WriteFile(r.binary+".new", []byte(script), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.binary+".new", r.binary); err != nil {
		r.t.Fatal(err)
	}
}

// command runs a command of headgate against the gate.
func (r *replaced) command(args ...string) (string, error) {
	cmd := exec.Command(os.Getenv(binaryFolder), append(args, "--state", filepath.Join(r.dir, "state"))...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// upgrade replaces the process, and returns how long it took until the new one served.
func (r *replaced) upgrade() time.Duration {
	r.t.Helper()
	out, err := r.command("upgrade", "-o", "json")
	var got struct {
		PID  int     `json:"pid"`
		Took float64 `json:"took_seconds"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &got)
	}
	if err != nil {
		r.t.Fatalf("upgrade: %v\n%s\n%s", err, out, r.logged())
	}
	r.pid = got.PID
	pid := got.PID
	r.t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	return time.Duration(got.Took * float64(time.Second))
}

// state returns what the API shows of upgrades.
func (r *replaced) state() (s upgradeState, err error) { return s, r.api("/upgrade", &s) }

// api reads a path of the API into out.
func (r *replaced) api(path string, out any) error {
	data, err := r.get("/api/v1" + path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// get reads a path by the admin socket.
func (r *replaced) get(path string) ([]byte, error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			link := filepath.Join(shortDir(r.t), "state")
			if err := os.Symlink(filepath.Join(r.dir, "state"), link); err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
		}}}
	rs, err := client.Get("http://headgate" + path)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, rs.Status)
	}
	return io.ReadAll(rs.Body)
}

// alone waits until the process that was replaced has ended.
func (r *replaced) alone() {
	r.t.Helper()
	eventually(r.t, "the replaced process ends", func() bool {
		s, err := r.state()
		return err == nil && s.Previous == nil && s.PID == r.pid
	})
}

// TestUpgradesUnderMixedLoad holds that nothing is lost when the process is replaced, again
// and again, while clients of every protocol are served. Tunnels live until one upgrade is
// over, as two generations is the most there is.
func TestUpgradesUnderMixedLoad(t *testing.T) {
	count := upgradesInARow(3)
	id := newIdentity(t, "one.example")
	plain, secure, tcp, udp, ready := free(t), free(t), free(t), free(t), free(t)
	calls, _ := grpcServer(t, "tcp4", "127.0.0.1:0", nil)
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	r := startReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: %q}
access_log: {enabled: false}
ports:
  plain: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  all:
    routes:
      - {servers: [{url: %q}]}
      - {path: /ws, servers: [{url: %q}]}
      - {path: /grpc.testing.TestService, servers: [{url: "h2c://%s/grpc.testing.TestService"}]}
tcp_proxies:
  stream: {address: %q, servers: [{address: %q}]}
udp_proxies:
  datagrams: {address: %q, servers: [{address: %q}]}
`, ready, plain, secure, secure, echoRequests(t), echoUpgrades(t), calls, tcp, echoStreams(t), udp, echoDatagrams(t)))
	watch := r.watchState()
	datagrams := countDatagrams(t, udp)

	m := &upgradeLoad{mixed: &mixed{t: t, stop: make(chan struct{})}, config: trusting(id), plain: plain, secure: secure, packets: secure, tcp: tcp}
	m.http()
	m.tunnels()
	m.extended()
	m.readyz(ready)

	start := footprint(t, r.pid)
	var slowest, sum time.Duration
	peak := 0 // memory of both processes in KiB
	var each []usage
	for i := range count {
		m.progress()
		old := r.pid
		took := r.upgrade()
		slowest, sum = max(slowest, took), sum+took
		m.progress() // tunnels of the replaced process among it
		peak = max(peak, footprint(t, r.pid).memory+footprint(t, old).memory)
		if holdsFile(old, r.lock()) {
			t.Error("the replaced process has the lock of the state directory open")
		}
		m.over.Add(1)
		r.alone()
		if s, err := r.state(); err != nil || s.Generation != i+2 {
			t.Errorf("after upgrade %d: generation %d, %v", i+1, s.Generation, err)
		}
		each = append(each, footprint(t, r.pid))
	}
	m.progress()
	drops := []int{socketDrops(t, secure), socketDrops(t, udp)}
	lost := m.end()
	watch.verify(count)
	datagrams.verify()
	t.Logf("datagrams dropped by the system: HTTP/3 %d, UDP proxy %d", drops[0], drops[1])
	t.Logf("%d upgrades, %d lost; until serving %v on average, %v at most; of both processes at most %d KiB", count, lost, sum/time.Duration(count), slowest, peak)
	verifyNoLeak(t, start, each)
	syscall.Kill(r.pid, syscall.SIGTERM)
	eventually(t, "the last process ends", func() bool { return syscall.Kill(r.pid, 0) != nil || zombie(r.pid) })
}

// zombie reports whether a process has ended and nobody has waited for it.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// usage is what a process has.
type usage struct{ files, sockets, threads, memory int } // memory in KiB

// footprint returns what a process has.
func footprint(t *testing.T, pid int) (u usage) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	list, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	u.files = len(list)
	for _, e := range list {
		if to, err := os.Readlink(dir + "fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			u.sockets++
		}
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		switch name, rest, _ := strings.Cut(line, ":"); name {
		case "VmRSS":
			fmt.Sscan(rest, &u.memory)
		case "Threads":
			fmt.Sscan(rest, &u.threads)
		}
	}
	return u
}

// maxMoreFiles is how many more descriptors a process may have than another one with the same
// clients, as those are not at the same point.
const maxMoreFiles = 60

// verifyNoLeak compares what processes that replaced each other have, all with the same
// clients: what one leaks to the next grows with each.
func verifyNoLeak(t *testing.T, start usage, each []usage) {
	t.Helper()
	for i, u := range each {
		if i < 3 || (i+1)%10 == 0 || i == len(each)-1 {
			t.Logf("after upgrade %d: %d descriptors, %d of them sockets, %d threads, %d KiB", i+1, u.files, u.sockets, u.threads, u.memory)
		}
	}
	first, last := each[0], each[len(each)-1]
	t.Logf("before the first, with few clients: %d descriptors, %d of them sockets, %d threads, %d KiB", start.files, start.sockets, start.threads, start.memory)
	if last.files > first.files+maxMoreFiles || last.sockets > first.sockets+maxMoreFiles {
		t.Errorf("%d descriptors and %d sockets after %d upgrades, %d and %d after the first", last.files, last.sockets, len(each), first.files, first.sockets)
	}
	if len(each) >= 20 && median(each[len(each)-9:]) > 2*median(each[:9]) {
		t.Errorf("%d KiB in the last processes, %d in the first", median(each[len(each)-9:]), median(each[:9]))
	}
}

// median returns the median of their memory.
func median(all []usage) int {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b usage) int { return a.memory - b.memory })
	return sorted[len(sorted)/2].memory
}

// fewFiles starts headgate with enough descriptors to run, whatever it inherited, and too few
// to take over manyPorts.
const (
	fewFiles  = `ulimit -n 64; exec $REAL "$@"`
	manyPorts = 80
)

// TestKilledDuringAnUpgrade ends one of the two processes at a step of the upgrade. In each
// case one process serves, and nobody's request is lost as long as one lives.
func TestKilledDuringAnUpgrade(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string // in place of the new binary; "" is headgate
		ports  int    // besides the first
		then   func(r *replaced, old int)
		says   string // in the output of the command; "" for an upgrade that succeeds
		cut    bool   // the old process has ended, and its tunnel with it
	}{
		{name: "the new binary ends at once", script: "exit 7", says: "ended before it served: exit status 7"},
		{name: "the new process cannot have the descriptors", script: fewFiles, ports: manyPorts, says: "limit of open files"},
		{name: "the new process is killed when it serves", then: func(r *replaced, old int) {
			syscall.Kill(r.pid, syscall.SIGKILL)
			r.pid = old
		}},
		{name: "the old process is killed when it was replaced", cut: true, then: func(r *replaced, old int) { syscall.Kill(old, syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := free(t)
			var ports strings.Builder
			for i := range c.ports {
				fmt.Fprintf(&ports, ", more%d: {address: %q, protocol: http}", i, free(t))
			}
			r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}%s}
proxies: {all: {routes: [{servers: [{url: %q}]}, {path: /ws, servers: [{url: %q}]}]}}
`, plain, &ports, echoRequests(t), echoUpgrades(t)))
			m := &mixed{t: t, stop: make(chan struct{})}
			m.run("HTTP/1.1", 2, func() (func([]byte) ([]byte, error), func()) {
				tr := &http.Transport{}
				return posts(tr, "http://"+plain+"/"), tr.CloseIdleConnections
			})
			m.run("HTTP/1.1, each on a new connection", 1, func() (func([]byte) ([]byte, error), func()) {
				return posts(&http.Transport{DisableKeepAlives: true}, "http://"+plain+"/"), func() {}
			})
			m.progress()
			ws := upgrade1(t, plain, nil)
			defer ws.Close()
			old := r.pid
			r.install(c.script)
			if c.says != "" {
				out, err := r.command("upgrade")
				if err == nil || !strings.Contains(out, c.says) {
					t.Errorf("got %v and %q, want %q", err, out, c.says)
				}
			} else {
				// An HTTP connection of the old process may break when that is killed: it
				// has none left by then but the tunnel.
				r.upgrade()
				eventually(t, "the old process has its tunnel only", func() bool {
					s, err := r.state()
					return err == nil && s.Previous != nil && s.Previous.Connections == 1
				})
				if !c.cut { // a connection of a client that is killed with the new process is lost
					close(m.stop)
					m.all.Wait()
				}
				c.then(r, old)
			}
			if !c.cut {
				if got, err := lines(ws)([]byte("still there")); err != nil || string(got) != "still there" {
					t.Errorf("the tunnel: %q, %v", got, err)
				}
			}
			eventually(t, "one process serves and can change the configuration", func() bool {
				s, err := r.state()
				return err == nil && s.PID == r.pid && s.Previous == nil
			})
			if out, err := r.command("token", "create", "one", "--role", "viewer"); err != nil {
				t.Errorf("state cannot be written: %v\n%s", err, out)
			}
			if got, err := posts(&http.Transport{DisableKeepAlives: true}, "http://"+plain+"/")([]byte("hello")); err != nil || string(got) != "hello" {
				t.Errorf("afterwards: %q, %v", got, err)
			}
			if c.says != "" || c.cut {
				m.progress()
				close(m.stop)
				m.all.Wait()
			}
			// What can be replaced again works as before.
			r.install("")
			if !c.cut {
				ws.Close()
			}
			r.upgrade()
			r.alone()
		})
	}
}

// TestOldProcessKilledWhileTheNewOneStarts leaves no process, and nothing that keeps the
// service manager from starting another one.
func TestOldProcessKilledWhileTheNewOneStarts(t *testing.T) {
	plain := free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{fixed_response: {status: 204}}]}}
`, plain))
	r.install("kill -9 $PPID\nexec $REAL \"$@\"")
	if out, err := r.command("upgrade"); err == nil {
		t.Errorf("the upgrade succeeded: %s", out)
	}
	eventually(t, "the new process ends, as nothing was handed over", func() bool {
		return strings.Contains(r.logged(), "cannot take over from the running process")
	})
	r.install("")
	r.run()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	rs, err := client.Get("http://" + plain + "/")
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	r.upgrade()
	r.alone()
}
