//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxConnections is how many connections both proxies take from clients.
const maxConnections = 48

// upstream is the server behind the proxies.
type upstream struct {
	http.Server
	address string
	trailer atomic.Bool // a forbidden trailer came through
}

func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{address: l.Addr().String()}
	text := bytes.Repeat([]byte("All work and no play makes a server dull. "), 1600)
	mux := http.NewServeMux()
	mux.HandleFunc("/probe", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		for range 128 { // 8 MiB
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for r.Context().Err() == nil {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Trailer.Get("Remote-User") != "" {
			u.trailer.Store(true)
		}
	})
	mux.HandleFunc("/secret", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Secret")
		_, _ = io.WriteString(w, "nothing")
		w.Header().Set("X-Secret", "of the server")
	})
	u.Handler = mux
	go func() { _ = u.Serve(l) }()
	return u, nil
}

func (u *upstream) close() { _ = u.Close() }

// proxy is a proxy that can be attacked.
type proxy struct {
	name   string
	file   string
	quic   bool // speaks HTTP/3
	config func(t *target, limit int) string
	argv   func(dir string) []string
}

func headgateProxy(program string) proxy {
	return proxy{
		name: "headgate", file: "headgate.yaml", quic: true,
		config: func(t *target, limit int) string {
			limits := ""
			if limit > 0 {
				limits = fmt.Sprintf(", limits: {max_connections: %d}", limit)
			}
			return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  h1: {address: %q, protocol: http%s}
  h2: {address: %q, protocol: http, h2c: true}
  h3: {address: %q, protocol: http3}
proxies:
  all:
    headers:
      - {direction: request, operation: remove, name: Remote-User}
      - {direction: response, operation: remove, name: X-Secret}
    compression: {algorithms: [gzip, br]}
    routes: [{path: /fixed, fixed_response: {status: 200, body: ok}}, {servers: [{url: "http://%s"}]}]
`, t.h1, limits, t.h2, t.h3, t.up.address)
		},
		argv: func(string) []string {
			return []string{program, "run", "--config", "headgate.yaml", "--state", "state"}
		},
	}
}

// nginxProxy is nginx with one worker and the settings that Debian's packages have.
func nginxProxy() proxy {
	return proxy{
		name: "nginx", file: "nginx.conf",
		config: func(t *target, limit int) string {
			connections := 16384
			if limit > 0 {
				connections = 2*limit + 8 // one to the server for each, and its own
			}
			user := ""
			if os.Getuid() == 0 {
				user = "user root;\n"
			}
			return fmt.Sprintf(`%sdaemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
error_log stderr crit;
pid nginx.pid;
events { worker_connections %d; }
http {
  client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
  access_log off;
  gzip on; gzip_proxied any; gzip_types text/plain;
  proxy_http_version 1.1;
  proxy_max_temp_file_size 0;
  server {
    listen %s;
    listen %s http2;
    http2_max_concurrent_streams 256;
    location = /fixed { return 200 "ok"; }
    location / { proxy_pass http://%s; proxy_set_header Connection ""; proxy_set_header Remote-User ""; proxy_hide_header X-Secret; }
  }
}
`, user, connections, t.h1, t.h2, t.up.address)
		},
		argv: func(dir string) []string { return []string{"nginx", "-p", dir, "-c", "nginx.conf", "-e", "stderr"} },
	}
}

// target is a proxy that runs.
type target struct {
	h1, h2, h3 string // its addresses of HTTP/1.1, of HTTP/2 without TLS and of HTTP/3
	up         *upstream
	cmd        *exec.Cmd
}

// started starts a proxy and waits until it serves.
func started(ctx context.Context, dir string, p proxy, up *upstream, limit int) (*target, error) {
	dir, err := os.MkdirTemp(dir, p.name)
	if err != nil {
		return nil, err
	}
	t := &target{up: up}
	for _, a := range []*string{&t.h1, &t.h2} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*a = l.Addr().String()
		l.Close()
	}
	if t.h3, err = freePacketAddress(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, p.file), []byte(p.config(t, limit)), 0o600); err != nil {
		return nil, err
	}
	argv := p.argv(dir)
	t.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	t.cmd.Dir = dir
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(os.Interrupt) }
	t.cmd.WaitDelay = 10 * time.Second
	said := &bytes.Buffer{}
	t.cmd.Stdout, t.cmd.Stderr = said, said
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	if t.untilAnswered(30*time.Second) < 0 {
		t.stop()
		return nil, fmt.Errorf("it does not serve: %s", said)
	}
	return t, nil
}

func (t *target) stop() {
	_ = t.cmd.Process.Signal(os.Interrupt)
	_ = t.cmd.Wait()
}

// probe asks for a page as another client, and reports whether it got it in time.
func (t *target) probe(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.h1+"/fixed", nil)
	if err != nil {
		return false
	}
	rs, err := client.Do(rq)
	if err != nil {
		return false
	}
	defer rs.Body.Close()
	_, err = io.Copy(io.Discard, rs.Body)
	return err == nil && rs.StatusCode == 200
}

// untilAnswered returns how long it took until a probe was answered, -1 if none was.
func (t *target) untilAnswered(patience time.Duration) time.Duration {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) {
		if t.probe(context.Background(), time.Second) {
			return time.Since(begun)
		}
	}
	return -1
}

// usage returns the processor time and the memory of the proxy and its workers.
func (t *target) usage() (cpu time.Duration, memory int64) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		at := bytes.LastIndexByte(text, ')')
		fields := strings.Fields(string(text[at+1:])) // from the state on
		pid, parent := filepath.Base(filepath.Dir(file)), fields[1]
		if own := strconv.Itoa(t.cmd.Process.Pid); pid != own && parent != own {
			continue
		}
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		cpu += time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
		memory += pages * int64(os.Getpagesize())
	}
	return cpu, memory
}

// probes is how many requests another client makes while an attack goes on.
const probes = 20

// measure attacks a proxy.
func measure(ctx context.Context, dir string, p proxy, up *upstream, a attack) (*result, error) {
	t, err := started(ctx, dir, p, up, a.limit)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	up.trailer.Store(false)
	r := &result{}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	before, _ := t.usage()
	var beside sync.WaitGroup
	var answered atomic.Int64
	beside.Go(func() {
		tick := time.NewTicker(length / (probes + 4))
		defer tick.Stop()
		for range probes {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			beside.Go(func() {
				if t.probe(ctx, length) {
					answered.Add(1)
				}
			})
		}
	})
	beside.Go(func() {
		for ctx.Err() == nil {
			_, memory := t.usage()
			r.memory = max(r.memory, memory)
			time.Sleep(length / 20)
		}
	})
	r.note = a.run(ctx, t)
	<-ctx.Done()
	a.leave()
	during, _ := t.usage()
	r.cpu = during - before
	r.back = t.untilAnswered(time.Minute)
	beside.Wait()
	r.answered = int(answered.Load())
	time.Sleep(3*time.Second - min(r.back, 3*time.Second))
	after, _ := t.usage()
	r.after = after - during
	return r, nil
}
