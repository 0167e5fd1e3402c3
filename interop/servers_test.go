package interop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// serverAddress tells a run of the test's binary that it is a server, and where.
const serverAddress = "HEADGATE_INTEROP_SERVER"

// work is how long a server has a request, so that some are always under way.
const work = 10 * time.Millisecond

// serve answers until it is told to end; then running requests may end first.
func serve(address string) int {
	s := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(work)
		fmt.Fprintf(w, "from %s", address)
	})}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() { ended <- s.Shutdown(context.Background()) })
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ended
	return 0
}

// process is a server in a process of its own, which can be killed.
type process struct {
	t       *testing.T
	address string
	cmd     *exec.Cmd
}

func newProcess(t *testing.T) *process {
	p := &process{t: t, address: free(t)}
	p.live()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// live starts it and waits until it answers.
func (p *process) live() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), serverAddress+"="+p.address)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "the server answers", func() bool {
		rs, err := http.Get("http://" + p.address + "/")
		if err == nil {
			rs.Body.Close()
		}
		return err == nil
	})
}

// end sends a signal and waits until the process is gone.
func (p *process) end(signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(signal)
	p.cmd.Wait()
	p.cmd = nil
}

// pace is a load of so many requests a second.
type pace struct {
	stop           chan struct{}
	all            sync.WaitGroup
	began          time.Time
	served, failed atomic.Int64
	mu             sync.Mutex
	why            map[string]int
}

// clients is how many ask at once.
const clients = 50

// begin asks an address so many times a second, over connections that are kept. A
// client whose connection is lost does not ask again.
func begin(address string, perSecond int) *pace {
	l := &pace{stop: make(chan struct{}), began: time.Now(), why: map[string]int{}}
	for i := range clients {
		l.all.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			ticks := time.NewTicker(time.Second * clients / time.Duration(perSecond))
			defer ticks.Stop()
			for n := i; ; n++ {
				select {
				case <-l.stop:
					return
				case <-ticks.C:
				}
				l.ask(tr, fmt.Sprintf("http://%s/%d", address, n))
			}
		})
	}
	return l
}

func (l *pace) ask(tr *http.Transport, url string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rq, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	rs, err := tr.RoundTrip(rq)
	word := ""
	if err != nil {
		word = err.Error()
	} else {
		body, err := io.ReadAll(rs.Body)
		rs.Body.Close()
		switch {
		case err != nil:
			word = err.Error()
		case rs.StatusCode != 200 || !strings.HasPrefix(string(body), "from "):
			word = rs.Status
		}
	}
	if word == "" {
		l.served.Add(1)
		return
	}
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why[word]++
}

// end ends the load and tells of it.
func (l *pace) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.all.Wait()
	took := time.Since(l.began).Seconds()
	t.Logf("%d requests in %.1f s (%.0f a second), %d failed %v", l.served.Load()+l.failed.Load(), took,
		float64(l.served.Load()+l.failed.Load())/took, l.failed.Load(), l.why)
}

// more waits for so many further requests.
func (l *pace) more(t *testing.T, n int64) {
	t.Helper()
	begun := l.served.Load()
	eventually(t, "requests are answered", func() bool { return l.served.Load() >= begun+n })
}

// fleet is a headgate in front of three servers that are processes.
type fleet struct {
	*gate
	servers      []*process
	admin, front string
}

func newFleet(t *testing.T, route string) *fleet {
	f := &fleet{gate: prepare(t), admin: free(t), front: free(t)}
	var list []string
	for range 3 {
		p := newProcess(t)
		f.servers = append(f.servers, p)
		list = append(list, fmt.Sprintf("{url: %q}", "http://"+p.address))
	}
	f.start(fmt.Sprintf(`
version: 1
admin: {address: %q}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies:
  all:
    routes:
      - servers: [%s]
        health_check: {interval: 500ms, unhealthy_interval: 200ms, rise: 2, fall: 2}
        ejection: {time: 1s}
        %s
`, f.admin, f.front, strings.Join(list, ", "), route))
	f.await("all servers are healthy", "healthy", "healthy", "healthy")
	return f
}

// await waits until the servers have these states.
func (f *fleet) await(what string, want ...string) {
	f.t.Helper()
	eventually(f.t, what, func() bool { return slices.Equal(f.states(), want) })
}

// states are the states of the servers, as the admin socket tells them.
func (f *fleet) states() (out []string) {
	var page struct {
		Proxies []struct {
			Routes []struct{ Servers []struct{ State string } }
		}
	}
	if err := f.status("", &page); err != nil {
		f.t.Fatal(err)
	}
	for _, s := range page.Proxies[0].Routes[0].Servers {
		out = append(out, s.State)
	}
	return out
}

// TestServersRestartOneByOne holds that a restart of all servers, one after the
// other, costs no request: those under way end, and no other is sent to a server
// that is not there.
func TestServersRestartOneByOne(t *testing.T) {
	for name, route := range map[string]string{"as it is": "", "with retries": "retry: {attempts: 3, on: [connect, reset]}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, route)
			l := begin(f.front, 2000)
			l.more(t, 500)
			for _, p := range f.servers {
				p.end(syscall.SIGTERM)
				l.more(t, 200)
				p.live()
				f.await("the server is back", "healthy", "healthy", "healthy")
				l.more(t, 200)
			}
			l.end(t)
			if n := l.failed.Load(); n > 0 {
				t.Errorf("%d requests failed", n)
			}
		})
	}
}

// TestAServerIsKilled holds that a server which is killed costs no request when
// resets are tried again, and without that no more than were under way to it.
func TestAServerIsKilled(t *testing.T) {
	for name, route := range map[string]string{"no retries": "", "retries": "retry: {attempts: 3, on: [connect, reset]}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, route)
			l := begin(f.front, 2000)
			l.more(t, 1000)
			began := time.Now()
			f.servers[1].end(syscall.SIGKILL)
			eventually(t, "it is out", func() bool { return f.states()[1] != "healthy" })
			out := time.Since(began)
			l.more(t, 2000)
			began = time.Now()
			f.servers[1].live()
			f.await("it is back", "healthy", "healthy", "healthy")
			t.Logf("out within %v, back within %v", out.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			l.end(t)
			n := l.failed.Load()
			if route != "" && n > 0 || n > clients {
				t.Errorf("%d requests failed", n)
			}
		})
	}
}
