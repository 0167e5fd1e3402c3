package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// somebodysHash stands in for secrets that an example has from a file.
const somebodysHash = "$argon2id$v=19$m=19456,t=2,p=1$ERLjcyzALkN6Z2rXk7e7sg$0gvJ3pzyZ5mIUvZQhqAHrkyK0IFqqRgqCVL4ZtEbSgg"

// shown is a block of YAML in a page.
type shown struct {
	page string
	line int
	text string
}

// examplesIn returns the blocks of YAML in a page, without their indent.
func examplesIn(page, text string) []shown {
	var out []shown
	var open *shown
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		switch {
		case open == nil && (bare == "```yaml" || strings.HasPrefix(bare, "```yaml ")):
			indent = line[:len(line)-len(bare)]
			open = &shown{page: page, line: i + 1}
		case open != nil && strings.HasPrefix(bare, "```"):
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return out
}

// settingsOf returns the names of the settings of a struct, embedded ones too.
func settingsOf(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out[name] = true
		}
	}
	return out
}

// only reports whether all keys of an example are settings of one object.
func only(keys map[string]any, of map[string]bool) bool {
	for key := range keys {
		if !of[key] {
			return false
		}
	}
	return true
}

// whole makes a configuration of an example, which may show a part of one: the
// settings of a proxy, of a route, or of both.
func whole(keys map[string]any) map[string]any {
	route, proxy, top := settingsOf(reflect.TypeFor[Route]()), settingsOf(reflect.TypeFor[Proxy]()), settingsOf(reflect.TypeFor[Config]())
	if only(keys, route) && !only(keys, proxy) {
		keys = map[string]any{"routes": []any{keys}}
	}
	if !only(keys, top) {
		keys = map[string]any{"proxies": map[string]any{"example": keys}}
	}
	put(keys, "version", 1)
	put(keys, "ports", map[string]any{"web": map[string]any{"address": "127.0.0.1:8080", "protocol": "http"}})
	proxies, _ := keys["proxies"].(map[string]any)
	for _, p := range proxies {
		p, _ := p.(map[string]any)
		put(p, "routes", []any{map[string]any{}})
		routes, _ := p["routes"].([]any)
		for _, r := range routes {
			if r, _ := r.(map[string]any); r["fixed_response"] == nil && r["files"] == nil && r["sign_in"] == nil {
				put(r, "servers", []any{map[string]any{"url": "http://127.0.0.1:3000"}})
			}
		}
	}
	return keys
}

// put sets a key that is not there.
func put(m map[string]any, key string, value any) {
	if _, ok := m[key]; !ok && m != nil {
		m[key] = value
	}
}

// TestExamplesOfPagesAreAccepted holds that what the guides show can be written.
func TestExamplesOfPagesAreAccepted(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"README.md", "docs/guides/*.md", "internal/feature/*/guide.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	secrets := regexp.MustCompile(`\$\{(file:[^}]*|[A-Z_]+)\}`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range examplesIn(page, string(text)) {
			var keys map[string]any
			text := secrets.ReplaceAllLiteralString(e.text, somebodysHash)
			if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
				t.Errorf("%s:%d: %v\n%s", e.page, e.line, err, e.text)
				continue
			}
			data, err := yaml.Marshal(whole(keys))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, problems := Load("example.yaml", data); len(problems) > 0 {
				t.Errorf("%s:%d: %v\n%s", e.page, e.line, problems, data)
			}
		}
	}
}
