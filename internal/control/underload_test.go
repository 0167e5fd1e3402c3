package control_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"headgate/internal/control"
	"headgate/internal/testhouse"
)

// records is a log that is read by tests.
type records struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// running is a control that runs.
type running struct {
	*control.Control
	log  *records
	file string
	stop func() error
}

// run runs a control with a configuration until the test ends.
func run(t *testing.T, text string) *running {
	t.Helper()
	r := prepare(t, text)
	if err := r.start(t); err != nil {
		t.Fatal(err)
	}
	return r
}

func prepare(t *testing.T, text string) *running {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	dir := t.TempDir()
	r := &running{log: &records{}, file: filepath.Join(dir, "headgate.yaml")}
	r.write(t, text)
	return r
}

// start begins to run. It returns when the configuration was applied, or with
// the error of Run.
func (r *running) start(t *testing.T) error {
	t.Helper()
	ready, ended := make(chan struct{}), make(chan error, 1)
	c, err := control.New(control.Options{
		Log: slog.New(slog.NewTextHandler(r.log, nil)), ConfigFile: r.file, StateDir: filepath.Join(t.TempDir(), "state"),
		Ready: func() { close(ready) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Control = c
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-ready:
		t.Cleanup(func() {
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
		return nil
	case err := <-ended:
		return err
	}
}

// write puts a configuration in the place of the file in one step.
func (r *running) write(t *testing.T, text string) {
	t.Helper()
	temp := r.file + "~"
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, r.file); err != nil {
		t.Fatal(err)
	}
}

// change puts a configuration into the file and applies it.
func (r *running) change(t *testing.T, text string) error {
	t.Helper()
	r.write(t, text)
	return r.Reload()
}

// setup is a configuration in short: the address of each port, and the status
// that each answers with.
type setup map[string]portSetup

type portSetup struct {
	address string
	status  int
}

func (s setup) String() string {
	var b strings.Builder
	b.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports:\n")
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "  %s: {address: %q, protocol: http, drain_timeout: 5s}\n", name, s[name].address)
	}
	b.WriteString("proxies:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "  %s: {ports: [%s], routes: [{fixed_response: {status: %d}}]}\n", name, name, s[name].status)
	}
	return b.String()
}

// get asks on a connection of its own and returns the status.
func get(address string) (int, error) {
	return getBy(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, address)
}

func getBy(client *http.Client, address string) (int, error) {
	ctx, cancel := testhouse.Patient(context.Background())
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/", nil)
	if err != nil {
		return 0, err
	}
	rs, err := client.Do(rq)
	if err != nil {
		return 0, err
	}
	defer rs.Body.Close()
	_, err = io.Copy(io.Discard, rs.Body)
	return rs.StatusCode, err
}

func wantStatus(t testing.TB, address string, want int) {
	t.Helper()
	if got, err := get(address); err != nil || got != want {
		t.Errorf("%s answers %d, %v; want %d", address, got, err, want)
	}
}

// traffic asks an address all the time, on kept and on new connections, and counts
// the answers that are not wanted.
type traffic struct {
	asked, lost atomic.Int64
	first       atomic.Pointer[string]
	end         chan struct{}
	clients     sync.WaitGroup
}

func startTraffic(address string, wanted func(status int) bool) *traffic {
	l := &traffic{end: make(chan struct{})}
	for i := range 4 {
		l.clients.Go(func() {
			transport := &http.Transport{DisableKeepAlives: i%2 == 0}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for {
				select {
				case <-l.end:
					return
				default:
				}
				testhouse.Pause()
				l.asked.Add(1)
				if status, err := getBy(client, address); err != nil || !wanted(status) {
					l.lost.Add(1)
					text := fmt.Sprintf("status %d, %v", status, err)
					l.first.CompareAndSwap(nil, &text)
				}
			}
		})
	}
	return l
}

// stop ends the load and tells when something was lost.
func (l *traffic) stop(t testing.TB) {
	t.Helper()
	before := l.asked.Load()
	testhouse.Eventually(t, "load after the last change", func() bool { return l.asked.Load() > before+20 })
	close(l.end)
	l.clients.Wait()
	if l.lost.Load() > 0 {
		t.Errorf("%d of %d requests were lost, the first: %s", l.lost.Load(), l.asked.Load(), *l.first.Load())
	}
}

// Whatever changes around it, a port that stays answers every request, and what
// a change declares holds when it was applied, also where an address overlaps
// with that of a port before.
func TestRandomChangesUnderLoadLoseNothing(t *testing.T) {
	ports := testhouse.Ports(t, 4)
	steady := portSetup{"127.0.0.1:" + ports[0], 201}
	r := run(t, setup{"steady": steady}.String())
	l := startTraffic(steady.address, func(status int) bool { return status >= 201 && status <= 203 })
	defer l.stop(t)
	rapid.Check(t, func(rt *rapid.T) {
		next := setup{"steady": {steady.address, rapid.IntRange(201, 203).Draw(rt, "steady")}}
		for _, port := range ports[1:] {
			name := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "name")
			ip := rapid.SampledFrom([]string{"127.0.0.1", "0.0.0.0"}).Draw(rt, "ip")
			if name != "" {
				next[name] = portSetup{ip + ":" + port, rapid.IntRange(400, 404).Draw(rt, "status")}
			}
		}
		if err := r.change(t, next.String()); err != nil {
			rt.Fatalf("%v\n%s", err, next)
		}
		for name, p := range next {
			_, port, _ := net.SplitHostPort(p.address)
			if got, err := get("127.0.0.1:" + port); err != nil || got != p.status {
				rt.Fatalf("port %s answers %d, %v; want %d\n%s", name, got, err, p.status, next)
			}
		}
		if got := len(r.Plan().Ports()); got != len(next) {
			rt.Fatalf("the plan has %d ports, want %d", got, len(next))
		}
	})
}

// A port that covers more or fewer addresses than before serves the common ones
// throughout.
func TestAnAddressWidensAndNarrowsUnderLoad(t *testing.T) {
	port := testhouse.Ports(t, 1)[0]
	narrow := setup{"web": {"127.0.0.1:" + port, 201}}.String()
	wide := setup{"web": {"0.0.0.0:" + port, 201}}.String()
	r := run(t, narrow)
	l := startTraffic("127.0.0.1:"+port, func(status int) bool { return status == 201 })
	for range 3 {
		for _, text := range []string{wide, narrow} {
			if err := r.change(t, text); err != nil {
				t.Error(err)
			}
		}
	}
	l.stop(t)
}

func TestPortsSwapTheirAddressesWithoutTouchingSockets(t *testing.T) {
	ports := testhouse.Ports(t, 2)
	x, y := "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	r := run(t, setup{"a": {x, 201}, "b": {y, 202}}.String())
	since := map[string]time.Time{}
	for _, p := range r.Status().Ports {
		since[p.Address] = p.Since
	}
	l := startTraffic(x, func(status int) bool { return status == 201 || status == 202 })
	if err := r.change(t, setup{"a": {y, 201}, "b": {x, 202}}.String()); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, x, 202)
	wantStatus(t, y, 201)
	for _, p := range r.Status().Ports {
		want := map[string]string{x: "b", y: "a"}[p.Address]
		if p.Name != want || p.State != "listening" || !p.Since.Equal(since[p.Address]) {
			t.Errorf("got %+v, want port %s listening since %v", p, want, since[p.Address])
		}
	}
	l.stop(t)
}
