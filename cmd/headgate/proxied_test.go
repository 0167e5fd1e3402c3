package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// TestNobodyBecomesLocalThroughAProxy asks for everything that the admin listener has,
// by an HTTP proxy and by a TCP proxy of the same headgate in front of it. Its
// connections come from a loopback address then, whoever sends them.
func TestNobodyBecomesLocalThroughAProxy(t *testing.T) {
	dir, admin, web, tcp := t.TempDir(), testhouse.Address(t), testhouse.Address(t), testhouse.Address(t)
	file, state := filepath.Join(dir, "headgate.yaml"), filepath.Join(dir, "state")
	config := fmt.Sprintf(`version: 1
admin: {address: %q}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies: {gate: {host_header: upstream, routes: [{servers: [{url: "http://%s"}]}]}}
tcp_proxies: {gate: {address: %q, servers: [{address: %q}]}}
`, admin, web, admin, tcp, admin)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	m := manage(t, file, state)
	defer m.end()
	m.setUp(state)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, spec := m.call("GET", "/openapi.json", "")
	public := []string{"GET /openapi.json", "GET /setup", "POST /setup", "POST /session", "DELETE /session", "POST /session/oidc", "PUT /session/oidc", "POST /session/passkey", "PUT /session/passkey"}
	asked := 0
	for path, item := range spec["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			method = strings.ToUpper(method)
			if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) || slices.Contains(public, method+" "+strings.TrimPrefix(path, "/api/v1")) {
				continue
			}
			asked++
			at := strings.NewReplacer("{name}", "gate", "{number}", "1", "{other}", "1").Replace(path)
			if !strings.HasPrefix(at, "/api/v1") {
				at = "/api/v1" + at
			}
			for way, base := range map[string]string{"http": web, "tcp": tcp} {
				if status, body := throughProxy(t, method, base, at); status != 401 {
					t.Errorf("%s %s by %s: %d %.200s, want 401", method, at, way, status, body)
				}
			}
		}
	}
	if asked < 60 {
		t.Errorf("only %d rows were asked for", asked)
	}
	// The pages beside the API. A TCP proxy changes nothing in a request, so that what is
	// given to programs on this machine without a sign-in is given to its clients, too.
	for _, p := range []struct {
		method, path string
		http, tcp    int
	}{
		{"GET", "/status", 401, 401}, {"GET", "/status?proxy=gate", 401, 401}, {"POST", "/cache/purge", 401, 401},
		{"GET", "/metrics", 401, 200}, {"GET", "/healthz", 401, 200}, {"GET", "/livez", 401, 200}, {"GET", "/readyz", 401, 200},
		{"GET", "/instance", 403, 200},
	} {
		for way, c := range map[string]struct {
			base string
			want int
		}{"http": {web, p.http}, "tcp": {tcp, p.tcp}} {
			if status, body := throughProxy(t, p.method, c.base, p.path); status != c.want {
				t.Errorf("%s %s by %s: %d %.200s, want %d", p.method, p.path, way, status, body, c.want)
			}
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the document was changed: %v\n%s", err, after)
	}
}

// throughProxy sends a request as somebody who claims to be on this machine.
func throughProxy(t *testing.T, method, address, path string) (int, string) {
	t.Helper()
	rq, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("If-Match", "*")
	rq.Host = "localhost"
	rs, err := newHTTPClient().Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	var body json.RawMessage
	_ = json.NewDecoder(rs.Body).Decode(&body) // pages are no JSON
	return rs.StatusCode, string(body)
}
