package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

func run(t *testing.T, kind, name, text string) (*Result, error) {
	t.Helper()
	return Run(t.Context(), Source{Kind: kind, Names: []string{name}, Files: importer.Given(map[string][]byte{name: []byte(text)})})
}

func TestCompose(t *testing.T) {
	for text, want := range map[string][]string{
		"services:\n  web:\n    labels:\n      caddy: a.example.com\n      caddy.reverse_proxy: \"{{upstreams 8080}}\"\n      caddy.nonsense: x\n      caddy.header: \"{{now}}\"\n": {"virtual_hosts: [a.example.com]", "http://web:8080", "web: caddy.nonsense (nonsense x)", "web: caddy.header={{now}}", "compose.yml:5"},
		"services: {web: {labels: [\"traefik.http.routers.a.rule=Host(`a.example.com`)\"], expose: [\"8080\"]}, t: {command: [\"--entryPoints.web.address=:80\"]}}":                 {"virtual_hosts: [a.example.com]", "http://web:8080"},
		"services: {web: {environment: {VIRTUAL_HOST: a.example.com}, expose: [\"8080\"]}}":                                                                                         {"virtual_hosts: [a.example.com]", "http://web:8080"},
	} {
		r, err := run(t, "compose", "compose.yml", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		all := string(r.Document)
		for _, e := range r.Report.Entries {
			all += fmt.Sprintf("%s:%d %s\n", e.File, e.Line, e.Directive)
		}
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no %q in\n%s", text, w, all)
			}
		}
		if len(r.Problems) > 0 {
			t.Errorf("%s: %v", text, r.Problems)
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, s := range map[string]Source{
		"no kind":       {Kind: "apache", Names: []string{"x"}},
		"no names":      {Kind: "nginx"},
		"no door":       {Kind: "nginx", Names: []string{"http://127.0.0.1"}},
		"two addresses": {Kind: "npm", Names: []string{"http://127.0.0.1", "b"}},
		"two databases": {Kind: "npm", Names: []string{"a", "b"}},
		"no labels":     {Kind: "compose", Names: []string{"none"}, Files: importer.Given(map[string][]byte{"none": []byte("services: {a: {}}")})},
		"two families":  {Kind: "compose", Names: []string{"two"}, Files: importer.Given(map[string][]byte{"two": []byte("services: {a: {labels: [caddy=x]}, b: {environment: [VIRTUAL_HOST=x]}}")})},
	} {
		var misuse *Misuse
		if _, err := Run(t.Context(), s); !errors.As(err, &misuse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPorts(t *testing.T) {
	numbers, err := ParsePorts([]string{"80=8080", "443=8443"})
	if err != nil {
		t.Fatal(err)
	}
	const text = `
http {
  server { listen 80; listen [::1]:81; server_name a.example.com; return 301 https://$host$request_uri; }
  server { listen 443 ssl; listen 443 quic; server_name a.example.com; ssl_certificate a.crt; ssl_certificate_key a.key; location / { proxy_pass http://127.0.0.1:80; } }
}
stream { server { listen 2222; proxy_pass 127.0.0.1:22; } }`
	r, err := Run(t.Context(), Source{Kind: "nginx", Names: []string{"n"}, Files: importer.Given(map[string][]byte{"n": []byte(text)}), Ports: numbers})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"web: {address: '0.0.0.0:8080', protocol: http}", "websecure: {address: '0.0.0.0:8443', protocol: https}", "quic: {address: '0.0.0.0:8443', protocol: http3}", "http://127.0.0.1:80/", "[::1]:81", "0.0.0.0:2222"} {
		if got := strings.ReplaceAll(string(r.Document), `"`, "'"); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, r.Document)
		}
	}
	if told := strings.Join(r.Report.Check, "\n"); !strings.Contains(told, "keeps 0.0.0.0:2222") || !strings.Contains(told, "keeps [::1]:81") {
		t.Errorf("ports that both have are not told: %s", told)
	}
	for _, wrong := range []string{"80", "80=", "=80", "80=0", "0=80", "80=65536", "a=b", "80=1,80=2"} {
		if _, err := ParsePorts(strings.Split(wrong, ",")); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
