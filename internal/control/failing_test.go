package control

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/plan"
	"headgate/internal/server/health"
	"headgate/internal/testhouse"
)

// killable is a server that can die as a process does that is killed: its socket is
// gone and its connections are reset, with what is on them.
type killable struct {
	address string
	asked   atomic.Int64
	status  atomic.Int32

	mu struct {
		sync.Mutex
		listener net.Listener
		conns    map[net.Conn]bool
	}
}

func newKillable(t *testing.T) *killable {
	k := &killable{address: "127.0.0.1:0"}
	k.status.Store(200)
	k.live(t)
	t.Cleanup(k.kill)
	return k
}

// live listens, and serves every connection until it is killed.
func (k *killable) live(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", k.address)
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	k.address, k.mu.listener, k.mu.conns = l.Addr().String(), l, map[net.Conn]bool{}
	k.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.mu.Lock()
			alive := k.mu.listener == l
			if alive {
				k.mu.conns[c] = true
			}
			k.mu.Unlock()
			if !alive {
				c.Close()
				return
			}
			go k.serve(c)
		}
	}()
}

func (k *killable) serve(c net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			c.Close()
			return
		}
		if !strings.HasPrefix(string(b[:n]), "GET /healthz") {
			k.asked.Add(1)
		}
		fmt.Fprintf(c, "HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok", k.status.Load())
	}
}

func (k *killable) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.listener == nil {
		return
	}
	k.mu.listener.Close()
	k.mu.listener = nil
	for c := range k.mu.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

// getters ask an address again and again, and count what is not 200.
type getters struct {
	stop           chan struct{}
	running        sync.WaitGroup
	served, failed atomic.Int64
}

func get(address string, clients int) *getters {
	g := &getters{stop: make(chan struct{})}
	for range clients {
		g.running.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			for {
				select {
				case <-g.stop:
					return
				default:
				}
				testhouse.Pause()
				rs, err := tr.RoundTrip(must(http.NewRequest("GET", "http://"+address+"/", nil)))
				if err == nil {
					_, err = io.Copy(io.Discard, rs.Body)
					rs.Body.Close()
				}
				if err != nil || rs.StatusCode != 200 {
					g.failed.Add(1)
					continue
				}
				g.served.Add(1)
			}
		})
	}
	return g
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// more waits until so many further requests were answered, one way or the other.
func (g *getters) more(t *testing.T, n int64) {
	t.Helper()
	begun := g.served.Load() + g.failed.Load()
	testhouse.Eventually(t, "requests are answered", func() bool { return g.served.Load()+g.failed.Load() >= begun+n })
}

func (g *getters) end() {
	close(g.stop)
	g.running.Wait()
}

// onlyProxy returns how the one proxy stands.
func onlyProxy(h *house) plan.ProxyState {
	return h.c.Status().Proxies[0]
}

// A server that is killed under load costs no request when resets are tried again,
// and without that no more than were under way to it. It gets no requests until it
// is back, and then gets its share again.
func TestAServerIsKilledUnderLoad(t *testing.T) {
	const clients = 16
	for _, retry := range []bool{true, false} {
		t.Run(fmt.Sprintf("retry=%v", retry), func(t *testing.T) {
			servers := []*killable{newKillable(t), newKillable(t), newKillable(t)}
			at := testhouse.Addresses(t, 1)[0]
			text := "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports: {a: {address: " + at + ", protocol: http}}\n" +
				"proxies:\n  p:\n    routes:\n      - health_check: {path: /healthz, interval: 200ms, unhealthy_interval: 100ms, rise: 2, fall: 2}\n" +
				"        ejection: {time: 100ms}\n"
			if retry {
				text += "        retry: {attempts: 3, on: [reset], budget: 100}\n"
			}
			text += "        servers:\n"
			for _, s := range servers {
				text += "          - {url: \"http://" + s.address + "\"}\n"
			}
			h := start(t, text)
			testhouse.Eventually(t, "all are healthy", func() bool { return onlyProxy(h).Healthy == 3 })
			g := get(at, clients)
			g.more(t, 300)
			began := time.Now()
			servers[1].kill()
			testhouse.Eventually(t, "it is out", func() bool { return !onlyProxy(h).Routes[0].Servers[1].Usable() })
			out := time.Since(began)
			testhouse.Eventually(t, "it is unhealthy", func() bool { return onlyProxy(h).Routes[0].Servers[1].State == health.Unhealthy })
			if s := onlyProxy(h); s.State != plan.ProxyDegraded || s.Healthy != 2 {
				t.Errorf("the proxy is %s with %d healthy servers", s.State, s.Healthy)
			}
			g.more(t, 300)
			began = time.Now()
			servers[1].live(t)
			testhouse.Eventually(t, "it is back", func() bool { return onlyProxy(h).Healthy == 3 })
			t.Logf("out after %v, back after %v", out.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			before, all := servers[1].asked.Load(), g.served.Load()
			g.more(t, 600)
			g.end()
			if share := float64(servers[1].asked.Load()-before) / float64(g.served.Load()-all); share < 0.25 || share > 0.42 {
				t.Errorf("after its return it has %.2f of the requests, want a third", share)
			}
			failed := g.failed.Load()
			t.Logf("%d requests were answered, %d failed", g.served.Load(), failed)
			switch {
			case retry && failed > 0:
				t.Errorf("%d requests failed", failed)
			case failed > clients:
				t.Errorf("%d requests failed, more than were under way", failed)
			}
		})
	}
}

// When all servers are unhealthy all are asked: a wrong check takes no site down.
func TestAllServersUnhealthyAreAllAsked(t *testing.T) {
	servers := []*killable{newKillable(t), newKillable(t)}
	at := testhouse.Addresses(t, 1)[0]
	h := start(t, "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports: {a: {address: "+at+", protocol: http}}\n"+
		"proxies:\n  p:\n    routes:\n      - health_check: {path: /healthz, status: \"418\", unhealthy_interval: 100ms}\n"+
		"        servers: [{url: \"http://"+servers[0].address+"\"}, {url: \"http://"+servers[1].address+"\"}]\n")
	testhouse.Eventually(t, "the proxy is down: nothing was answered yet", func() bool { return onlyProxy(h).State == plan.ProxyDown })
	for range 4 {
		expectStatus(t, at, 200)
	}
	if a, b := servers[0].asked.Load(), servers[1].asked.Load(); a != 2 || b != 2 {
		t.Errorf("asked %d and %d times", a, b)
	}
	// The state outlives a change that leaves the servers alone.
	checks := onlyProxy(h).Routes[0].Servers[0].Failed
	h.apply(strings.Replace(must(readText(h.file)), "proxies:\n", "proxies:\n  other: {virtual_hosts: [o.test], routes: [{fixed_response: {status: 204}}]}\n", 1))
	for _, p := range h.c.Status().Proxies {
		if p.Name == "p" && p.Routes[0].Servers[0].Failed < checks {
			t.Errorf("after a change of something else: %s, %d failed checks", p.State, p.Routes[0].Servers[0].Failed)
		}
	}
	// With fail_open: false nobody is asked.
	h.apply(strings.Replace(must(readText(h.file)), "- health_check", "- fail_open: false\n        health_check", 1))
	testhouse.Eventually(t, "the proxy is down", func() bool { return onlyProxy(h).State == plan.ProxyDown })
	before := servers[0].asked.Load() + servers[1].asked.Load()
	expectStatus(t, at, 503)
	if after := servers[0].asked.Load() + servers[1].asked.Load(); after != before {
		t.Errorf("with fail_open off %d requests went to unhealthy servers", after-before)
	}
	// Without checks nothing is known against them.
	h.apply(strings.Replace(must(readText(h.file)), `health_check: {path: /healthz, status: "418", unhealthy_interval: 100ms}`, "path: /", 1))
	testhouse.Eventually(t, "the proxy is active", func() bool { return onlyProxy(h).State == plan.ProxyActive })
}

func readText(file string) (string, error) {
	b, err := os.ReadFile(file)
	return string(b), err
}
