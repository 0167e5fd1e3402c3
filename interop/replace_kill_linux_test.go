package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killSteps are the steps of an upgrade in their order: the message on the link of both
// processes that has just been sent. The two others are the start of the new process and the
// notification of the service manager, when the old process has released everything.
// Those that are usually left out are much like one that is not; HEADGATE_UPGRADES tries all.
var (
	killSteps  = []string{"start", "hello", "files", "state", "begin", "serving", "MAINPID", "acknowledged", "progress"}
	usualKills = []string{"begin", "MAINPID", "acknowledged", "progress"}
)

// TestKilledAtEachStepOfAnUpgrade kills one of the two processes at each step. As long as the
// old process has not acknowledged, the end of the new one costs nothing, and the end of the
// old one ends both. Afterwards the end of the old one costs its own connections only, and if
// the new one ends, the old one serves again. In each case the state has one owner.
func TestKilledAtEachStepOfAnUpgrade(t *testing.T) {
	var table strings.Builder
	for i, step := range killSteps {
		if os.Getenv(upgradesVariable) == "" && !slices.Contains(usualKills, step) {
			continue
		}
		for _, who := range []string{"new", "old"} {
			t.Run(step+" "+who, func(t *testing.T) {
				k := &killCase{t: t, step: step, who: who, acknowledged: i >= len(killSteps)-2}
				k.run()
				fmt.Fprintf(&table, "| %s | %s | %s |\n", step, who, k.happened)
			})
		}
	}
	t.Logf("step, who was killed, what happened:\n%s", &table)
}

// killCase is one upgrade with a process that is killed.
type killCase struct {
	t            *testing.T
	step, who    string
	acknowledged bool // the old process has sent, or is just sending, that the new one may serve

	r        *replaced
	url      string
	happened string
}

func (k *killCase) run() {
	t, plain := k.t, free(k.t)
	k.url = "http://" + plain + "/"
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{servers: [{url: %q}]}, {path: /ws, servers: [{url: %q}]}]}}
`, plain, echoRequests(t), echoUpgrades(t)))
	k.r = r
	tunnel := upgrade1(t, plain, nil)
	defer tunnel.Close()
	load := k.load()
	eventually(t, "clients are served", func() bool { return load.served.Load() > 5 })
	old := r.pid
	r.install(relayScript(k.step, k.who, r.dir))
	if k.step == "MAINPID" {
		k.killWhenReleased(old)
	}
	requested := make(chan string, 1)
	go func() {
		out, _ := r.command("upgrade")
		requested <- out
	}()
	eventually(t, "a process is killed", func() bool { return strings.Contains(k.relay(), "killed ") })
	fresh := k.fresh()
	t.Cleanup(func() { syscall.Kill(fresh, syscall.SIGKILL) })
	said := <-requested
	oldLives, newLives := k.who == "new", k.who == "old" && k.acknowledged
	serving := map[bool]int{true: old, false: fresh}[oldLives]
	if !oldLives && !newLives {
		k.startAnew(old, fresh)
		serving = r.pid
	}
	r.pid = serving
	eventually(t, "one process serves", func() bool {
		s, err := r.state()
		return err == nil && s.PID == serving && s.Previous == nil && !s.Running
	})
	for _, pid := range []int{old, fresh} {
		if pid != serving {
			eventually(t, "the other process has ended", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
		}
	}
	if oldLives {
		if got, err := lines(tunnel)([]byte("still there")); err != nil || string(got) != "still there" {
			t.Errorf("the tunnel of the old process: %q, %v", got, err)
		}
	}
	lost := load.end()
	if oldLives && k.step != "progress" && lost > 0 { // the new process has not served yet
		t.Errorf("%d requests were lost", lost)
	}
	k.holdsState()
	what := map[bool]string{true: "the old process serves", false: "the new process serves"}[oldLives]
	if !oldLives && !newLives {
		what = "both end; the service manager starts headgate"
	}
	k.happened = fmt.Sprintf("%s; %d of %d requests lost; the command: %s", what, lost, lost+int(load.served.Load()), firstLine(said))
	tunnel.Close()
	r.install("")
	r.upgrade() // works as before
	r.alone()
}

// relay returns what the relay has reported.
func (k *killCase) relay() string {
	b, _ := os.ReadFile(filepath.Join(k.r.dir, relayLog))
	return string(b)
}

// fresh returns the process ID of the new process.
func (k *killCase) fresh() int {
	text, _, _ := strings.Cut(strings.TrimPrefix(k.relay(), "new "), "\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		k.t.Fatalf("the relay has reported %q", k.relay())
	}
	return pid
}

// killWhenReleased kills a process when the old one notifies the service manager of the new
// one: the old process waits for an answer then, and has not acknowledged.
func (k *killCase) killWhenReleased(old int) {
	k.r.supervisor.atMain(func(pid int) { killed(k.r.dir, map[string]int{"old": old, "new": pid}[k.who]) })
}

// startAnew is what a service manager does after both processes have ended.
func (k *killCase) startAnew(old, fresh int) {
	k.t.Helper()
	for _, pid := range []int{old, fresh} {
		eventually(k.t, "both processes end", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
	k.r.install("")
	k.r.run()
}

// holdsState verifies that the state can be written, and that its lock is held.
func (k *killCase) holdsState() {
	k.t.Helper()
	if out, err := k.r.command("token", "create", "one", "--role", "viewer"); err != nil {
		k.t.Errorf("the state cannot be written: %v\n%s", err, out)
	}
	if ok, err := lockFree(k.r.lock()); ok || err != nil {
		k.t.Errorf("the lock of the state directory is free: %v, %v", ok, err)
	}
}

// lock returns the path of the lock of the state directory.
func (r *replaced) lock() string { return filepath.Join(r.dir, "state", "lock") }

// lockFree reports whether no process has a lock.
func lockFree(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

// killLoad are clients that each open a connection for a request, again and again.
type killLoad struct {
	served, lost atomic.Int64
	stop         chan struct{}
	all          sync.WaitGroup
}

func (k *killCase) load() *killLoad {
	l := &killLoad{stop: make(chan struct{})}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 2 {
		l.all.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				rs, err := client.Post(k.url, "text/plain", strings.NewReader("hello"))
				if err != nil {
					l.lost.Add(1)
					<-time.After(10 * time.Millisecond) // a client that is refused tries again
					continue
				}
				rs.Body.Close()
				l.served.Add(1)
			}
		})
	}
	k.t.Cleanup(func() { l.end() })
	return l
}

// end ends the clients, and returns how many requests were lost.
func (l *killLoad) end() int {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.all.Wait()
	return int(l.lost.Load())
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
