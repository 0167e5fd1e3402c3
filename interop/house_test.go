package interop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

// binaryFolder is the headgate that TestMain built. If it is set before, TestMain builds none.
const binaryFolder = "HEADGATE_INTEROP_BINARY"

func TestMain(m *testing.M) {
	if address := os.Getenv(serverAddress); address != "" {
		os.Exit(serve(address))
	}
	if ended, code := betweenProcesses(); ended {
		os.Exit(code)
	}
	if os.Getenv(networkJob) != "" {
		os.Exit(runNetworkJob())
	}
	if words := os.Getenv(officialCase); words != "" {
		os.Exit(call(words))
	}
	os.Exit(run(m))
}

// run builds headgate into a folder of its own, if it is not built yet, and runs the tests.
func run(m *testing.M) int {
	if os.Getenv(binaryFolder) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "headgate"), "./cmd/headgate")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build headgate: %v\n%s", err, out)
		return 1
	}
	os.Setenv(binaryFolder, filepath.Join(dir, "headgate"))
	return m.Run()
}

// gate is a headgate that runs, in a folder of its own.
type gate struct {
	t        *testing.T
	dir      string // files that the configuration names by relative paths go here
	file     string
	flags    []string // of headgate run, beside those of a gate
	env      []string // of headgate run, beside that of the test
	binary   string   // "" is the headgate of the test
	inside   []string // a command and its arguments that run headgate; nil runs it here
	cmd      *exec.Cmd
	told     *net.UnixConn // what it tells the service manager
	log, out *record
}

// prepare returns a gate that does not run yet, so that files can be put into its
// folder.
func prepare(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), log: &record{}, out: &record{}}
	g.file = filepath.Join(g.dir, "headgate.yaml")
	return g
}

// start runs headgate with a configuration until the test ends.
func start(t *testing.T, config string) *gate {
	t.Helper()
	g := prepare(t)
	g.start(config)
	return g
}

// start runs the gate, and returns when it serves.
func (g *gate) start(config string) {
	g.t.Helper()
	address := &net.UnixAddr{Name: filepath.Join(shortDir(g.t), "s"), Net: "unixgram"}
	var err error
	if g.told, err = net.ListenUnixgram("unixgram", address); err != nil {
		g.t.Fatal(err)
	}
	g.put("headgate.yaml", config)
	command := append(slices.Clone(g.inside), cmp.Or(g.binary, os.Getenv(binaryFolder)), "run", "--config", g.file, "--state", filepath.Join(g.dir, "state"))
	command = append(command, g.flags...)
	g.cmd = exec.Command(command[0], command[1:]...)
	g.cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+address.Name), g.env...)
	g.cmd.Stderr, g.cmd.Stdout = g.log, g.out
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(g.stop)
	g.await("STATUS=Serving.")
}

// shortDir returns a folder for Unix sockets, whose paths must be short: that of a
// test's own folder may not be.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// status asks how everything stands, by the admin socket, and reads the answer into out.
// The error says that nobody answers yet.
func (g *gate) status(query string, out any) error {
	g.t.Helper()
	// The path of a test's folder may be too long for a socket: it goes by a short link.
	link := filepath.Join(shortDir(g.t), "state")
	if err := os.Symlink(filepath.Join(g.dir, "state"), link); err != nil {
		g.t.Fatal(err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
		}}}
	rs, err := client.Get("http://headgate/status" + query)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		g.t.Fatalf("the status cannot be read: %s", rs.Status)
	}
	if err := json.NewDecoder(rs.Body).Decode(out); err != nil {
		g.t.Fatal(err)
	}
	return nil
}

// end stops the gate before the test ends.
func (g *gate) end() { g.stop() }

// kill ends the gate as a crash would.
func (g *gate) kill() {
	g.t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	g.cmd.Wait() // it says that it was killed
	g.told.Close()
	g.cmd = nil
}

// stop ends the gate and waits for its end.
func (g *gate) stop() {
	if g.cmd == nil {
		return
	}
	g.cmd.Process.Signal(syscall.SIGTERM)
	last := time.AfterFunc(patience, func() { g.cmd.Process.Kill() })
	err := g.cmd.Wait()
	last.Stop()
	g.told.Close()
	g.cmd = nil // it may have been started anew: then there is another call
	if err != nil {
		g.t.Errorf("headgate ended with %v", err)
	}
	if g.t.Failed() {
		g.t.Logf("the log of headgate:\n%s\n%s", g.log, g.out)
	}
}

// apply changes the configuration, and returns when the change was applied.
func (g *gate) apply(config string) {
	g.t.Helper()
	g.put("headgate.yaml", config)
	g.cmd.Process.Signal(syscall.SIGHUP)
	g.await("RELOADING=1")
	g.await("STATUS=Serving.")
}

// await waits until headgate tells the service manager a state.
func (g *gate) await(state string) {
	g.t.Helper()
	p := make([]byte, 1<<10)
	g.told.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := g.told.Read(p)
		if err != nil {
			g.t.Fatalf("headgate does not say %s: %v\n%s", state, err, g.log)
		}
		for line := range strings.Lines(string(p[:n])) {
			if strings.TrimSpace(line) == state {
				return
			}
		}
	}
}

// put writes a file into the gate's folder, at once and whole.
func (g *gate) put(name, content string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// free returns an address of this machine at which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + lasting(t)
}

// given are the ports that a test has.
var given sync.Map

// lasting returns a port that stays free while nobody listens there: it is below those that
// the system gives to clients, and to servers that do not ask for one.
func lasting(t *testing.T) string {
	t.Helper()
	for range 1000 {
		number := fmt.Sprint(12000 + rand.IntN(20000))
		l, err := net.Listen("tcp4", "0.0.0.0:"+number)
		if err != nil {
			continue
		}
		l.Close()
		p, err := net.ListenPacket("udp4", "0.0.0.0:"+number)
		if err != nil {
			continue
		}
		p.Close()
		if _, taken := given.LoadOrStore(number, true); !taken {
			return number
		}
	}
	t.Fatal("no port is free")
	return ""
}

// record is what a process writes. It may be read while the process runs.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds p.
func (t *record) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String returns all of it.
func (t *record) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// serveStreams starts a TCP server that does something with each connection, and then closes it.
func serveStreams(t *testing.T, do func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go acceptAll(l, do)
	return l.Addr().String()
}

// acceptAll does something with each connection of a listener until that is closed.
func acceptAll(l net.Listener, do func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			do(c)
		}()
	}
}
