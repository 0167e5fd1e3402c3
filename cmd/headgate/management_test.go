package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

// managed is a house whose API is asked.
type managed struct {
	house   server
	t       *testing.T
	base    string
	cookie  string
	secret  string
	stop    context.CancelFunc
	stopped chan error
}

// manage starts a house with the admin listener on loopback.
func manage(t *testing.T, file, state string) *managed {
	t.Helper()
	m := &managed{t: t, stopped: make(chan error, 1)}
	ready := make(chan struct{})
	h, err := openServer(serverOptions{log: slog.New(slog.DiscardHandler), config: file, state: state, ready: func() { close(ready) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	m.stop, m.house = stop, h
	go func() { m.stopped <- h.Run(ctx) }()
	select {
	case <-ready:
	case err := <-m.stopped:
		t.Fatal(err)
	}
	m.base = "http://" + h.(*controlled).admin.Address().String() + "/api/v1"
	return m
}

func (m *managed) end() {
	m.t.Helper()
	m.stop()
	if err := <-m.stopped; err != nil {
		m.t.Error(err)
	}
}

func (m *managed) call(method, path, body string) (int, map[string]any) {
	m.t.Helper()
	rq, err := http.NewRequestWithContext(m.t.Context(), method, m.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		m.t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/json")
	if m.cookie != "" {
		rq.Header.Set("Cookie", "__Host-headgate="+m.cookie)
		rq.Header.Set("Headgate-Session", m.secret)
	}
	rs, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}).Do(rq)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	out := map[string]any{}
	if err != nil || len(data) > 0 && json.Unmarshal(data, &out) != nil {
		m.t.Fatalf("%s %s: %d %q, %v", method, path, rs.StatusCode, data, err)
	}
	for _, c := range rs.Cookies() {
		m.cookie, m.secret = c.Value, out["secret"].(string)
	}
	return rs.StatusCode, out
}

// setUp makes the first user with the token that is in the state directory.
func (m *managed) setUp(state string) {
	m.t.Helper()
	token, err := os.ReadFile(filepath.Join(state, setupFile))
	if err != nil {
		m.t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]string{"token": strings.TrimSpace(string(token)), "name": "ann", "password": "correct horse battery"})
	if status, out := m.call("POST", "/setup", string(body)); status != 201 || out["role"] != "admin" {
		m.t.Fatalf("set up: %d %v", status, out)
	}
}

// TestRecentRequestsAreShown asks for requests that were served, and follows them.
func TestRecentRequestsAreShown(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir, web := t.TempDir(), testhouse.Address(t)
	file, state := filepath.Join(dir, "headgate.yaml"), filepath.Join(dir, "state")
	config := "version: 1\nadmin: {address: \"" + testhouse.Address(t) + "\"}\naccess_log: {enabled: false}\n" +
		"ports:\n  web: {address: \"" + web + "\", protocol: http}\nproxies:\n  shop: {routes: [{fixed_response: {status: 204}}]}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manage(t, file, state)
	defer m.end()
	m.setUp(state)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	get := func(path string) {
		t.Helper()
		rs, err := client.Get("http://" + web + path)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rq, _ := http.NewRequestWithContext(ctx, "GET", m.base+"/logs/access/stream?path=/two", nil)
	rq.Header.Set("Cookie", "__Host-headgate="+m.cookie)
	rq.Header.Set("Headgate-Session", m.secret)
	rs, err := client.Do(rq)
	if err != nil || rs.StatusCode != 200 {
		t.Fatal(rs, err)
	}
	defer rs.Body.Close()
	get("/one")
	get("/two")
	lines := bufio.NewScanner(rs.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"path":"/two"`) {
		if strings.Contains(lines.Text(), `"path":"/one"`) {
			t.Errorf("the stream shows what was not asked for: %s", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	status, out := m.call("GET", "/logs/access?proxy=shop&status=2xx", "")
	if items, _ := out["items"].([]any); status != 200 || len(items) != 2 {
		t.Errorf("recent requests: %d %v", status, out)
	}
}

// TestEventsTellWhatHappens has a server die and come back, a port move and a
// configuration refused.
func TestEventsTellWhatHappens(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir, web, moved := t.TempDir(), testhouse.Address(t), testhouse.Address(t)
	file, state := filepath.Join(dir, "headgate.yaml"), filepath.Join(dir, "state")
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(500)
		}
	}))
	defer server.Close()
	admin := testhouse.Address(t)
	write := func(address string) {
		t.Helper()
		config := "version: 1\nadmin: {address: \"" + admin + "\"}\naccess_log: {enabled: false}\nports:\n  web: {address: \"" + address + "\", protocol: http}\n" +
			"proxies:\n  shop: {routes: [{servers: [{url: \"" + server.URL + "\"}], health_check: {path: /, interval: 1s, timeout: 900ms}}]}\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(web)
	m := manage(t, file, state)
	defer m.end()
	m.setUp(state)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rq, _ := http.NewRequestWithContext(ctx, "GET", m.base+"/events?after=0", nil)
	rq.Header.Set("Cookie", "__Host-headgate="+m.cookie)
	rq.Header.Set("Headgate-Session", m.secret)
	rs, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(rq)
	if err != nil || rs.StatusCode != 200 {
		t.Fatal(rs, err)
	}
	defer rs.Body.Close()
	lines := bufio.NewScanner(rs.Body)
	var seen []string // events of one moment come in any order
	until := func(kind, what string) {
		t.Helper()
		is := func(line string) bool {
			return strings.Contains(line, `"type":"`+kind+`"`) && strings.Contains(line, what)
		}
		for !slices.ContainsFunc(seen, is) {
			if !lines.Scan() {
				break
			}
			seen = append(seen, lines.Text())
		}
		if slices.ContainsFunc(seen, is) {
			return
		}
		t.Fatalf("the stream ended before %s with %s", kind, what)
	}
	until("port.listening", web)
	broken.Store(true)
	until("server.unhealthy", server.URL)
	until("proxy.down", "shop")
	broken.Store(false)
	until("server.healthy", server.URL)
	until("proxy.recovered", "shop")
	write(moved)
	if err := m.house.Reload(); err != nil {
		t.Fatal(err)
	}
	until("config.applied", "")
	until("port.closed", web)
	until("port.listening", moved)
	if err := os.WriteFile(file, []byte("version: 1\nprots: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.house.Reload(); err == nil {
		t.Error("a broken configuration is applied")
	}
	until("config.refused", "prots")
}

// TestFirstUserIsMadeAndOutlivesARestart goes the way of somebody who starts headgate
// for the first time.
func TestFirstUserIsMadeAndOutlivesARestart(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := t.TempDir()
	file, state := filepath.Join(dir, "headgate.yaml"), filepath.Join(dir, "state")
	config := "version: 1\nadmin: {address: \"" + testhouse.Address(t) + "\"}\nproxies:\n  shop: {routes: [{fixed_response: {status: 204}}]}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manage(t, file, state)
	if status, out := m.call("GET", "/users", ""); status != 401 || out["code"] != "signed_out" {
		t.Errorf("before the first user: %d %v", status, out)
	}
	m.setUp(state)
	if status, out := m.call("GET", "/session", ""); status != 200 || out["name"] != "ann" {
		t.Errorf("who am I: %d %v", status, out)
	}
	m.end()

	again := manage(t, file, state)
	defer again.end()
	if _, err := os.Stat(filepath.Join(state, setupFile)); !os.IsNotExist(err) {
		t.Errorf("there is a set-up file again: %v", err)
	}
	again.cookie, again.secret = m.cookie, m.secret
	if status, out := again.call("GET", "/session", ""); status != 200 || out["name"] != "ann" {
		t.Errorf("after a restart: %d %v", status, out)
	}
	status, out := again.call("GET", "/events/history?types=config.applied", "")
	items, _ := out["items"].([]any)
	if status != 200 || len(items) == 0 || !strings.Contains(items[len(items)-1].(map[string]any)["text"].(string), "applied") {
		t.Errorf("events: %d %v", status, out)
	}
	if status, out := again.call("GET", "/audit?action=user.create", ""); status != 200 || len(out["items"].([]any)) != 1 {
		t.Errorf("audit: %d %v", status, out)
	}
}
