//go:build linux

package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// upgradesVariable is how many upgrades in a row are made under load; three by default.
const upgradesVariable = "HEADGATE_UPGRADES"

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
	count := 3
	if n, err := strconv.Atoi(os.Getenv(upgradesVariable)); err == nil {
		count = n
	}
	id := newIdentity(t, "one.example")
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM([]byte(id.cert))
	config := &tls.Config{RootCAs: trust, ServerName: "localhost"}
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

	m := &mixed{t: t, stop: make(chan struct{})}
	var longest [9]atomic.Int64 // by kind, in ns
	timed := func(kind int, round func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
		return func(p []byte) ([]byte, error) {
			began := time.Now()
			got, err := round(p)
			for took := int64(time.Since(began)); ; {
				was := longest[kind].Load()
				if took <= was || longest[kind].CompareAndSwap(was, took) {
					return got, err
				}
			}
		}
	}
	m.run("HTTP/1.1", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{}
		return timed(0, posts(tr, "http://"+plain+"/")), tr.CloseIdleConnections
	})
	m.run("HTTP/1.1 and TLS, each on a new connection", 2, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: config.Clone(), DisableKeepAlives: true}
		return timed(1, posts(tr, "https://"+secure+"/")), tr.CloseIdleConnections
	})
	m.run("HTTP/2", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
		return timed(2, againIfRefused(posts(tr, "https://"+secure+"/"))), tr.CloseIdleConnections
	})
	m.run("HTTP/3", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http3.Transport{TLSClientConfig: config.Clone()}
		return timed(3, againIfRefused(posts(tr, "https://"+secure+"/"))), func() { tr.Close() }
	})
	m.run("HTTP/3, each on a new connection", 1, func() (func([]byte) ([]byte, error), func()) {
		return timed(4, func(p []byte) ([]byte, error) {
			tr := &http3.Transport{TLSClientConfig: config.Clone()}
			defer tr.Close()
			return posts(tr, "https://"+secure+"/")(p)
		}), func() {}
	})
	var over atomic.Int64 // upgrades whose tunnels have been seen to live on
	tunnel := func(name string, kind int, open func() io.ReadWriteCloser) {
		m.run(name, 1, func() (func([]byte) ([]byte, error), func()) {
			c, of := open(), over.Load()
			return timed(kind, func(p []byte) ([]byte, error) {
				if now := over.Load(); now != of {
					c.Close()
					c, of = open(), now
				}
				return lines(c)(p)
			}), func() { c.Close() }
		})
	}
	tunnel("WebSocket over HTTP/1.1", 5, func() io.ReadWriteCloser { return upgrade1(t, plain, nil) })
	tunnel("WebSocket over HTTP/2", 6, func() io.ReadWriteCloser { return upgrade2(t, secure, config.Clone()) })
	tunnel("WebSocket over HTTP/3", 7, func() io.ReadWriteCloser { return upgrade3(t, secure, config.Clone()) })
	tunnel("gRPC stream", 8, func() io.ReadWriteCloser { return duplexCall(t, secure, config.Clone()) })
	tunnel("TCP", 5, func() io.ReadWriteCloser { return dial(t, "tcp", tcp) })
	m.run("readyz", 1, func() (func([]byte) ([]byte, error), func()) {
		return func(p []byte) ([]byte, error) {
			rs, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + ready + "/readyz")
			if err != nil {
				return nil, err
			}
			rs.Body.Close()
			if rs.StatusCode != 200 {
				return nil, fmt.Errorf("%s", rs.Status)
			}
			return p, nil
		}, func() {}
	})

	files, memory := footprint(t, r.pid)
	var slowest, sum time.Duration
	peak := 0 // memory of both processes in KiB
	for i := range count {
		m.progress()
		old := r.pid
		took := r.upgrade()
		slowest, sum = max(slowest, took), sum+took
		m.progress() // tunnels of the replaced process among it
		_, now := footprint(t, r.pid)
		_, before := footprint(t, old)
		peak = max(peak, now+before)
		if holdsFile(old, r.lock()) {
			t.Error("the replaced process has the lock of the state directory open")
		}
		over.Add(1)
		r.alone()
		if s, err := r.state(); err != nil || s.Generation != i+2 {
			t.Errorf("after upgrade %d: generation %d, %v", i+1, s.Generation, err)
		}
	}
	m.progress()
	close(m.stop)
	m.all.Wait()
	watch.verify(count)
	t.Logf("UDP proxy: %s", datagrams())
	var lost int64
	for _, k := range m.kinds {
		t.Logf("%-44s %6d rounds, %10d bytes, %d lost", k.name, k.rounds.Load(), k.size.Load(), k.lost.Load())
		lost += k.lost.Load()
	}
	for i, name := range []string{"HTTP/1.1", "TLS", "HTTP/2", "HTTP/3", "HTTP/3 new", "WebSocket 1.1 and TCP", "WebSocket 2", "WebSocket 3", "gRPC stream"} {
		t.Logf("longest answer, %s: %v", name, time.Duration(longest[i].Load()))
	}
	filesNow, memoryNow := footprint(t, r.pid)
	t.Logf("%d upgrades, %d lost; until serving %v on average, %v at most; descriptors %d, then %d; memory %d KiB, then %d KiB, of both processes at most %d KiB",
		count, lost, sum/time.Duration(count), slowest, files, filesNow, memory, memoryNow, peak)
	if filesNow > files+maxMoreFiles {
		t.Errorf("%d descriptors after %d upgrades, %d before the first", filesNow, count, files)
	}
	syscall.Kill(r.pid, syscall.SIGTERM)
	eventually(t, "the last process ends", func() bool { return syscall.Kill(r.pid, 0) != nil || zombie(r.pid) })
}

// againIfRefused sends a request again that net/http would send again by itself, if it could
// read the body twice: the connection had its GOAWAY before the request was processed (RFC
// 9113, section 8.7; RFC 9114, section 5.2). A client under load may pass over the last round trip between the two
// GOAWAY frames.
func againIfRefused(round func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(p []byte) ([]byte, error) {
		got, err := round(p)
		if err != nil && (strings.Contains(err.Error(), "cannot rewind body after connection loss") || strings.Contains(err.Error(), "H3_REQUEST_REJECTED")) {
			return round(p)
		}
		return got, err
	}
}

// zombie reports whether a process has ended and nobody has waited for it.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// maxMoreFiles is how many more descriptors the last process may have than the first: its
// clients are connected, and those of the first were not yet.
const maxMoreFiles = 60

// footprint returns how many descriptors a process has open, and its memory in KiB.
func footprint(t *testing.T, pid int) (files, memory int) {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &memory)
		}
	}
	return len(list), memory
}

// fewFiles starts headgate with just enough descriptors to run, and too few to take over. What
// the test itself inherited would count too, so it is closed first; 3 is the connection to the
// old process.
const fewFiles = `exec 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 11; exec $REAL "$@"`

// TestKilledDuringAnUpgrade ends one of the two processes at a step of the upgrade. In each
// case one process serves, and nobody's request is lost as long as one lives.
func TestKilledDuringAnUpgrade(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string // in place of the new binary; "" is headgate
		then   func(r *replaced, old int)
		says   string // in the output of the command; "" for an upgrade that succeeds
		cut    bool   // the old process has ended, and its tunnel with it
	}{
		{name: "the new binary ends at once", script: "exit 7", says: "ended before it served: exit status 7"},
		{name: "the new process cannot have the descriptors", script: fewFiles, says: "limit of open files"},
		{name: "the new process is killed when it serves", then: func(r *replaced, old int) {
			syscall.Kill(r.pid, syscall.SIGKILL)
			r.pid = old
		}},
		{name: "the old process is killed when it was replaced", cut: true, then: func(r *replaced, old int) { syscall.Kill(old, syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := free(t)
			r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{servers: [{url: %q}]}, {path: /ws, servers: [{url: %q}]}]}}
`, plain, echoRequests(t), echoUpgrades(t)))
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
