package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func wireOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// No source reads a file of this machine, whatever it includes and whatever its files are
// called: only what the body holds is there.
func TestImportReadsNothingOfThisMachine(t *testing.T) {
	h := start(t)
	const marker = "marker-of-a-secret"
	// A file that every reader could read, and show.
	secret := filepath.Join(t.TempDir(), "secret.yml")
	users := marker + ":$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n# services: {}\n"
	if err := os.WriteFile(secret, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	composed := filepath.Join(filepath.Dir(secret), "composed.yml")
	if err := os.WriteFile(composed, []byte("services: {s: {environment: {VIRTUAL_HOST: "+marker+"}, labels: [caddy="+marker+"]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ source, file, text string }{
		"nginx include":       {"nginx", "n.conf", "include SECRET; server { listen 80; }"},
		"nginx glob":          {"nginx", "n.conf", "http { include " + filepath.Dir(secret) + "/*; server { listen 80; } }"},
		"nginx users":         {"nginx", "n.conf", "server { listen 80; auth_basic a; auth_basic_user_file SECRET; location / { proxy_pass http://a; } }"},
		"nginx dump":          {"nginx", "n.conf", "# configuration file /x:\ninclude SECRET;\n# configuration file /y:\nserver { listen 80; }"},
		"caddy import":        {"caddy", "Caddyfile", "import SECRET\na.example.com {\n respond 1\n}"},
		"haproxy list":        {"haproxy", "h.cfg", "frontend f\n bind :80\n acl a src -f SECRET\n http-request deny if { hdr(host) -f SECRET }\n use_backend %[req.hdr(host),map(SECRET)]\n default_backend b\nbackend b\n server s 1.2.3.4:1"},
		"compose include":     {"compose", "c.yml", "include: [" + composed + "]\nservices: {s: {labels: [caddy=a.example.com]}}"},
		"compose extends":     {"compose", "c.yml", "services: {s: {extends: {file: " + composed + ", service: s}, labels: [caddy.x=1, caddy=a.example.com]}}"},
		"compose variables":   {"compose", "c.yml", "services: {s: {env_file: SECRET, environment: [VIRTUAL_HOST=a.example.com, HOME]}}"},
		"compose in a folder": {"compose", filepath.Dir(secret) + "/c.yml", "include: [composed.yml]\nservices: {s: {labels: [caddy=a.example.com]}}"},
		"a path for a name":   {"nginx", "../../../../../../../../" + secret, "server { listen 80; }"},
		"its name itself":     {"nginx", secret, "server { listen 80; include secret.yml; }"},
		"traefik users":       {"traefik", "t.yml", "http: {routers: {r: {rule: \"Host(`a`)\", service: s, middlewares: [m]}}, services: {s: {loadBalancer: {servers: [{url: http://a}]}}}, middlewares: {m: {basicAuth: {usersFile: SECRET}}}}"},
		"traefik certificate": {"traefik", "t.yml", "tls: {certificates: [{certFile: SECRET, keyFile: SECRET}]}"},
	} {
		in := map[string]any{"source": c.source, "files": []map[string]string{{"name": c.file, "text": strings.ReplaceAll(c.text, "SECRET", secret)}}}
		rs, out := h.call("POST", "/import", wireOf(t, in), "as: admin")
		if rs.StatusCode != 200 && rs.StatusCode != 400 {
			t.Errorf("%s: %s %v", name, rs.Status, out)
		}
		if told := fmt.Sprint(out); strings.Contains(told, marker) {
			t.Errorf("%s: the file was read: %s", name, told)
		}
	}
}

// What is sent to break the import is refused, and headgate goes on.
func TestImportOfHostileFiles(t *testing.T) {
	h := start(t)
	for name, in := range map[string]map[string]any{
		"a map in itself":              {"source": "compose", "files": []map[string]string{{"name": "c.yml", "text": "services: {a: {labels: &l {<<: *l, caddy: x}, environment: &e {<<: [*e, *l]}}}"}}},
		"a map in itself, for Traefik": {"source": "traefik", "files": []map[string]string{{"name": "c.yml", "text": "services: {a: {labels: &l {<<: *l, traefik.enable: true}}}\nhttp: &h {a: *h}"}}},
		"deep blocks":                  {"source": "nginx", "files": []map[string]string{{"name": "n.conf", "text": strings.Repeat("a {", 1_000_000)}}},
		"deep lists":                   {"source": "traefik", "files": []map[string]string{{"name": "t.yml", "text": strings.Repeat("[", 1_000_000)}}},
		"deep TOML":                    {"source": "traefik", "files": []map[string]string{{"name": "t.toml", "text": "a = " + strings.Repeat("[", 1_000_000)}}},
		"long TOML key":                {"source": "traefik", "files": []map[string]string{{"name": "t.toml", "text": strings.Repeat("a.", 500_000) + "b = 1"}}},
		"deep TOML table":              {"source": "traefik", "files": []map[string]string{{"name": "t.toml", "text": "[" + strings.Repeat("a.", 500_000) + "b]"}}},
		"TOML tables in tables":        {"source": "traefik", "files": []map[string]string{{"name": "t.toml", "text": "a = " + strings.Repeat("{b = ", 300_000)}}},
		"many merges":                  {"source": "traefik", "files": []map[string]string{{"name": "t.yml", "text": "http: &a {a: 1}\n" + strings.Repeat("b: {<<: *a}\n", 20_000)}}},
		"one long line":                {"source": "haproxy", "files": []map[string]string{{"name": "h.cfg", "text": strings.Repeat("x", 8<<20)}}},
		"no database":                  {"source": "npm", "files": []map[string]string{{"name": "d.sqlite", "data": "U1FMaXRlIGZvcm1hdCAzAA=="}}},
		"binary":                       {"source": "caddy", "files": []map[string]string{{"name": "Caddyfile", "data": "AAECAwQF//79"}}},
		"another source":               {"source": "nginx", "files": []map[string]string{{"name": "n.conf", "text": "services: {a: {}}"}}},
	} {
		began := time.Now()
		rs, out := h.call("POST", "/import", wireOf(t, in), "as: admin")
		if rs.StatusCode != 200 && rs.StatusCode != 400 {
			t.Errorf("%s: %s %v", name, rs.Status, out)
		}
		t.Logf("%s: %s after %v", name, rs.Status, time.Since(began).Round(time.Millisecond))
	}
	// More than may be sent is refused before it is kept.
	sent := &counting{}
	sent.left.Store(1 << 30)
	rq, err := http.NewRequest("POST", h.server.URL+Prefix+"/import", sent)
	if err != nil {
		t.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+h.tokens["admin"])
	rq.Header.Set("Content-Type", "application/json")
	rs, err := h.server.Client().Do(rq)
	if err == nil {
		rs.Body.Close()
		if rs.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("1 GiB: %s", rs.Status)
		}
	}
	if read := 1<<30 - sent.left.Load(); read > maxSource+(16<<20) {
		t.Errorf("%d MiB were taken", read>>20)
	}
	for _, who := range []string{"viewer", "editor"} {
		rs, out := h.call("POST", "/import", `{"source":"nginx","files":[{"name":"a","text":"server { listen 80; }"}]}`, "as: "+who)
		h.expect(who, rs, out, 403, "forbidden")
	}
}

// counting is a body of spaces, which counts what was taken of it. The client may still
// read it when the answer is there.
type counting struct{ left atomic.Int64 }

func (c *counting) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.left.Load())
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		p[i] = ' '
	}
	c.left.Add(-n)
	return int(n), nil
}
