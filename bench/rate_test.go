//go:build linux

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answering is a server that answers the hundred bytes and counts how often.
func answering(t *testing.T, change func(*httptest.Server)) (address string, served *atomic.Int64) {
	t.Helper()
	served = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, hundredBytes)
	}))
	change(server)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), served
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	l, err := startLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	return l
}

// TestConstantRate holds that every request is sent and answered, also when the
// answers do not keep up, and that those of the run-in are not noted.
func TestConstantRate(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("sleeps=%v", sleeps), func(t *testing.T) { testConstantRate(t, sleeps) })
	}
}

func testConstantRate(t *testing.T, sleeps bool) {
	l := newLoop(t)
	plain, plainServed := answering(t, (*httptest.Server).Start)
	secure, secureServed := answering(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
	to := target{address: secure, tls: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{h2}}}
	for _, tt := range []struct {
		name   string
		conns  int
		served *atomic.Int64
		first  int64 // requests that are not measured
		open   func(*pacer, int) (pacedConn, error)
	}{
		{"HTTP/1.1", latencyConnections, plainServed, 0, overH1(plain)},
		{"HTTP/2", latencyH2Connections, secureServed, latencyH2Connections, overH2(to, "h")},
		{"HTTP/1.1 over TLS", steadyConnections, secureServed, 0, overTLS1(target{address: secure, tls: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{h1}}})},
		{"the loop itself", latencyConnections, &atomic.Int64{}, 0, overH1(l.address)},
	} {
		before := tt.served.Load()
		latencies, err := l.constantRate(pace{rate: 2000, runIn: 100 * time.Millisecond, duration: 200 * time.Millisecond, conns: tt.conns, sleeps: sleeps}, tt.open)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := tt.served.Load() - before - tt.first; len(latencies) != 400 || got != 600 && got != 0 {
			t.Errorf("%s: got %d latencies of %d requests, want 400 of 600", tt.name, len(latencies), got)
		}
		for i, latency := range latencies {
			if latency < 0 {
				t.Errorf("%s: latency %d is %v: answered before it was due", tt.name, i, latency)
			}
		}
	}
}

func TestConstantRateFails(t *testing.T) {
	l := newLoop(t)
	short := pace{rate: 1000, duration: 100 * time.Millisecond, conns: latencyConnections}
	server := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(server.URL, "http://")
	if _, err := l.constantRate(short, overH1(address)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want the status", err)
	}
	server.Close()
	if _, err := l.constantRate(short, overH1(address)); err == nil {
		t.Error("nobody listens, and no error")
	}
}

// TestTheLoopServesWhileNothingIsMeasured holds that a proxy gets answers at any time.
func TestTheLoopServesWhileNothingIsMeasured(t *testing.T) {
	l := newLoop(t)
	for range 3 {
		if got, err := sendRequest(target{address: l.address}, get("/", "x")); err != nil || got != hundredBytes {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := l.constantRate(pace{rate: 1000, duration: 10 * time.Millisecond, conns: 2}, overH1(l.address)); err != nil {
			t.Fatal(err)
		}
	}
}
