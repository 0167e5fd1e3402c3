package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate/internal/cutover/importer"
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
