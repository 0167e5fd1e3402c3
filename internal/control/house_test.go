package control

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/config"
	"headgate/internal/gate"
	"headgate/internal/ports"
	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	if isChild() {
		runChild()
		return
	}
	goleak.VerifyTestMain(m)
}

// house is a control that runs, with a directory of its own.
type house struct {
	t     *testing.T
	c     *Control
	file  string
	state string
	log   *buffer
	stop  context.CancelFunc
	end   chan error
	seen  seen
}

// seen keeps what a house reports of people.
type seen struct {
	unwatched
	mu     sync.Mutex
	people []gate.Event

	failures []ECHFailure
}

func (s *seen) ECHRecords(f ECHFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, f)
}

func (s *seen) Person(e gate.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people = append(s.people, e)
}

// prepare makes a house that does not run yet. Text is its configuration file.
func prepare(t *testing.T, text string) *house {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "headgate.yaml")
	write(t, file, text)
	return prepareAt(t, file, filepath.Join(dir, "state"))
}

// prepareAt is prepare for a file or folder, and a state directory, that are there.
func prepareAt(t *testing.T, file, state string) *house {
	t.Helper()
	h := &house{t: t, file: file, state: state, log: &buffer{}, end: make(chan error, 1)}
	c, err := New(Options{
		Log:        slog.New(slog.NewTextHandler(h.log, nil)),
		ConfigFile: file,
		StateDir:   state,
		Watcher:    &h.seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.c = c
	return h
}

// again ends a house and starts another in its place.
func (h *house) again() *house {
	h.t.Helper()
	if !h.c.stopping.Load() {
		h.finish()
	}
	return prepareAt(h.t, h.file, h.state).run()
}

// retrySoon makes ports whose address is busy be tried again soon.
func (h *house) retrySoon(bind ports.Bind) {
	h.c.ports = ports.New(ports.Options{
		Log: h.c.log, Metrics: h.c.metrics, Current: &h.c.current, Bind: bind,
		Pace: ports.Pace{First: time.Millisecond, Last: 10 * time.Millisecond},
	})
	for i, p := range h.c.participants {
		if _, ok := p.(sockets); ok {
			h.c.participants[i] = sockets{h.c.ports}
		}
	}
}

// run starts the house and waits until it is ready.
func (h *house) run() *house {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	ready := make(chan struct{})
	h.c.options.Ready = func() { close(ready) }
	go func() { h.end <- h.c.Run(ctx) }()
	select {
	case <-ready:
	case err := <-h.end:
		h.t.Fatalf("it did not start: %v", err)
	}
	h.t.Cleanup(func() {
		stop()
		<-h.end
		close(h.end)
		if h.t.Failed() {
			h.t.Logf("the log of the house:\n%s", h.log.tail())
		}
	})
	return h
}

// start is prepare and run.
func start(t *testing.T, text string) *house { return prepare(t, text).run() }

// finish stops the house and waits for its end.
func (h *house) finish() {
	h.stop()
	err := <-h.end
	if err != nil {
		h.t.Error(err)
	}
	h.end <- err // for the clean-up
}

// doc is a configuration of one document.
func doc(text string) config.Documents {
	return config.Documents{List: []config.Document{{Name: "test.yaml", Data: []byte(text)}}}
}

// try applies a configuration.
func (h *house) try(text string) error {
	return h.c.Apply(Cause{Via: ViaAPI}, doc(text))
}

// apply applies a configuration that has to be taken.
func (h *house) apply(text string) {
	h.t.Helper()
	if err := h.try(text); err != nil {
		h.t.Fatal(err)
	}
}

// port returns the state of a port by its name and address.
func (h *house) port(name, address string) (ports.State, bool) {
	for _, p := range h.c.Status().Ports {
		if p.Name == name && p.Address == address {
			return p, true
		}
	}
	return ports.State{}, false
}

// is returns a question whether a port has a state.
func (h *house) is(name, address, state string) func() bool {
	return func() bool {
		p, ok := h.port(name, address)
		return ok && p.State == state
	}
}

// buffer is what was logged.
type buffer struct{ testhouse.Log }

func (b *buffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-4000):]
}

func (b *buffer) count(what string) int { return strings.Count(b.String(), what) }

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// document writes a configuration: ports as "name address" with more settings
// behind, and the status that every request gets.
func document(status int, ports ...string) string {
	var b strings.Builder
	b.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports:\n")
	for _, p := range ports {
		f := strings.SplitN(p, " ", 3)
		more := ""
		if len(f) == 3 {
			more = ", " + f[2]
		}
		fmt.Fprintf(&b, "  %s: {address: %q, protocol: http%s}\n", f[0], f[1], more)
	}
	fmt.Fprintf(&b, "proxies:\n  all: {routes: [{fixed_response: {status: %d}}]}\n", status)
	return b.String()
}

// client is one connection that speaks HTTP.
type client struct {
	net.Conn
	r *bufio.Reader
}

func connect(address string) (*client, error) {
	nc, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Now().Add(patience))
	return &client{nc, bufio.NewReader(nc)}, nil
}

// get makes a request and returns the status of its answer.
func (c *client) get(path string) (int, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		return 0, err
	}
	return c.answer()
}

func (c *client) answer() (int, error) {
	rs, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, err
	}
	defer rs.Body.Close()
	if _, err := io.Copy(io.Discard, rs.Body); err != nil {
		return 0, err
	}
	return rs.StatusCode, nil
}

// status returns what a new connection gets, 0 if it gets nothing.
func status(address string) int {
	c, err := connect(address)
	if err != nil {
		return 0
	}
	defer c.Close()
	s, err := c.get("/")
	if err != nil {
		return 0
	}
	return s
}

// expectStatus holds that a new connection to an address gets a status, 0 for none.
func expectStatus(t *testing.T, address string, wanted int) {
	t.Helper()
	if got := status(address); got != wanted {
		t.Errorf("%s: got status %d, want %d", address, got, wanted)
	}
}

// closed waits until an address takes nobody any more.
func closed(t *testing.T, address string) {
	t.Helper()
	testhouse.Eventually(t, address+" is closed", func() bool { return status(address) == 0 })
}

// slow is an upstream that answers when it is told to.
type slow struct {
	*http.Server
	url     string
	arrived chan struct{} // has a value for each request
	release chan struct{} // lets a request go
}

func startSlow(t *testing.T) *slow {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slow{url: "http://" + l.Addr().String(), arrived: make(chan struct{}, 100), release: make(chan struct{})}
	end := make(chan struct{})
	s.Server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		s.arrived <- struct{}{}
		select {
		case <-s.release:
		case <-rq.Context().Done():
		case <-end:
		}
		io.WriteString(w, "done")
	})}
	go s.Serve(l)
	t.Cleanup(func() {
		close(end)
		s.Close()
	})
	return s
}

// through writes a configuration whose requests go to a server.
func through(url, port string) string {
	text := document(200, port)
	return text[:strings.Index(text, "proxies:")] + fmt.Sprintf("proxies:\n  all: {routes: [{servers: [{url: %q}]}]}\n", url)
}
