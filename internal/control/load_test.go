package control

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/testhouse"
)

// fds returns how many descriptors the process has open, -1 if it cannot tell.
func fds() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// draw makes a configuration at random. The first two addresses always listen,
// under changing names; the host test always has a route to a server at /.
func draw(r *rand.Rand, at []string, server string) string {
	var b strings.Builder
	b.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports:\n")
	names := r.Perm(6)
	for i, address := range at {
		if i >= 2 && r.IntN(2) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  p%d: {address: %q, protocol: http, drain_timeout: %ds, limits: {max_connections: %d}}\n", names[i], address, 5+r.IntN(5), 100+r.IntN(3))
	}
	b.WriteString("proxies:\n")
	fmt.Fprintf(&b, "  main: {virtual_hosts: [test], routes: [{servers: [{url: \"%s/%d\", weight: %d}]}", server, r.IntN(2), 1+r.IntN(3))
	for i := range r.IntN(3) {
		fmt.Fprintf(&b, ", {path: /x%d, fixed_response: {status: %d}}", i, 210+r.IntN(3))
	}
	b.WriteString("]}\n")
	for i := range r.IntN(4) {
		fmt.Fprintf(&b, "  other%d: {virtual_hosts: [h%d.test], routes: [{fixed_response: {status: %d}}]}\n", i, i, 220+r.IntN(3))
	}
	return b.String()
}

// crowd is clients that ask without a pause.
type crowd struct {
	stop    chan struct{}
	running sync.WaitGroup
	served  atomic.Int64
	lost    atomic.Int64
	why     sync.Map
}

func (l *crowd) ended() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *crowd) count(got int, err error) {
	if err != nil || got != 200 {
		l.lost.Add(1)
		l.why.Store(fmt.Sprint(got, " ", err), true)
		return
	}
	l.served.Add(1)
}

// keep asks over one connection.
func (l *crowd) keep(address string) {
	c, err := connect(address)
	if err != nil {
		l.count(0, err)
		return
	}
	defer c.Close()
	for ; !l.ended() && err == nil; testhouse.Pause() {
		var got int
		c.SetDeadline(time.Now().Add(patience))
		got, err = c.get("/")
		l.count(got, err)
	}
}

// renew asks over a new connection each time. An address that is not always
// there may refuse the connection, and must serve it if it takes it.
func (l *crowd) renew(address string, always bool) {
	for ; !l.ended(); testhouse.Pause() {
		c, err := connect(address)
		if err != nil {
			if always {
				l.count(0, err)
			}
			continue
		}
		l.count(c.get("/"))
		c.Close()
	}
}

func TestNoRequestIsLostOverRandomChanges(t *testing.T) {
	at := testhouse.Addresses(t, 5) // which are held until the end
	goroutines, descriptors := runtime.NumGoroutine(), fds()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	text := draw(r, at, server.URL)
	h := start(t, text)
	l := &crowd{stop: make(chan struct{})}
	for range 2 {
		l.running.Go(func() { l.keep(at[0]) })
		l.running.Go(func() { l.keep(at[1]) })
	}
	for i, address := range at {
		l.running.Go(func() { l.renew(address, i < 2) })
	}
	const changes = 40
	for range changes {
		before := l.served.Load()
		text = draw(r, at, server.URL)
		h.apply(text)
		testhouse.Eventually(t, "requests are served", func() bool { return l.served.Load() > before+20 || l.lost.Load() > 0 })
		sameAsFresh(t, h.c.Plan(), text, at)
	}
	close(l.stop)
	l.running.Wait()
	l.why.Range(func(why, _ any) bool { t.Errorf("lost: %v", why); return true })
	t.Logf("%d of %d requests lost over %d changes", l.lost.Load(), l.lost.Load()+l.served.Load(), changes)
	h.finish()
	server.Close()
	testhouse.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	testhouse.Eventually(t, "no descriptor is left", func() bool { return fds() <= descriptors })
}

// sameAsFresh holds that a plan answers as one does that was compiled from
// nothing.
func sameAsFresh(t *testing.T, p *plan.Plan, text string, at []string) {
	t.Helper()
	cfg, doc, problems := config.Load("test.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	fresh, problems := plan.Compile(cfg, nil, plan.House{}, doc.Report())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defer fresh.Retire(nil)
	from := netip.MustParseAddr("192.0.2.1")
	for _, address := range at {
		port := address[strings.LastIndexByte(address, ':'):]
		for _, host := range []string{"test", "h0.test", "h1.test", "h2.test", "nobody"} {
			for _, path := range []string{"/", "/x0", "/x1/y"} {
				q := plan.Question{Method: "GET", Scheme: "http", Authority: host + port, Target: path, From: from}
				kept, made := p.Explain(q), fresh.Explain(q)
				if got, want := kept.Text(), made.Text(); got != want {
					t.Fatalf("%s%s%s:\ncarried over: %s\nfresh: %s", host, port, path, got, want)
				}
			}
		}
	}
}
