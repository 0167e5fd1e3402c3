package plan

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"headgate/internal/config"
)

// Explain tells what the spec scripts show on the wire: for every request of
// theirs that reaches a server, the head is the same.
func TestExplainShowsWhatServersGet(t *testing.T) {
	names, err := filepath.Glob("../../spec/testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	compared := 0
	for _, name := range names {
		script, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(script.Comment), "\nonly: streams\n") {
			continue // the front makes another request of it
		}
		if strings.Contains(string(script.Comment), "\nexplain: no\n") {
			continue // what servers get depends on what was before
		}
		var p *Plan
		for i, f := range script.Files {
			switch {
			case f.Name == "config":
				p = planOf(t, name, script.Files[i].Data)
			case f.Name == "request" && i+1 < len(script.Files) && script.Files[i+1].Name == "upstream gets" && p != nil:
				if compareHead(t, filepath.Base(name), p, string(f.Data), string(script.Files[i+1].Data)) {
					compared++
				}
			}
		}
	}
	if compared < 30 {
		t.Errorf("%d requests were compared, want at least 30", compared)
	}
}

func planOf(t *testing.T, name string, data []byte) *Plan {
	text := strings.ReplaceAll(string(data), "UPSTREAM", "127.0.0.1:3000")
	cfg, _, _ := config.Load(name, []byte(text))
	if cfg == nil {
		return nil // more than one server, or one that is down: not for us
	}
	p, problems := Compile(cfg, nil, testEnvironment(cfg), nil)
	if problems != nil {
		t.Errorf("%s: %v", name, problems)
	}
	return p
}

// compareHead reports whether the request was one that can be asked about.
func compareHead(t *testing.T, name string, p *Plan, request, want string) bool {
	head, _, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	words := strings.Split(lines[0], " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" || words[1][0] != '/' {
		return false
	}
	q := Question{Method: words[0], Scheme: "http", Target: words[1], From: netip.MustParseAddr("127.0.0.1")}
	for _, line := range lines[1:] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if strings.EqualFold(field, "Host") {
			q.Authority = value
			continue
		}
		q.Fields = append(q.Fields, [2]string{field, value})
	}
	e := p.Explain(q)
	if len(e.Servers) == 0 {
		return false
	}
	want, _, _ = strings.Cut(want, "\n\n")
	want = strings.NewReplacer("UPSTREAM", "127.0.0.1:3000", "SCHEME", "http", "VERSION", "1.1").Replace(want)
	var heads []string
	for _, s := range e.Servers {
		heads = append(heads, strings.TrimSuffix(strings.ReplaceAll(s.Head, "\r\n", "\n"), "\n\n"))
	}
	if !slices.Contains(heads, want) {
		t.Errorf("%s: %s %s\nexplained as\n%s\nthe server gets\n%s", name, q.Method, q.Target, heads[0], want)
	}
	return true
}
