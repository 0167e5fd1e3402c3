package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/plan/inputs"
)

// greeted is a front that keeps the fields that a client would see.
type greeted struct {
	sent
	fields string
}

func (g *greeted) Send(ex *exchange.Exchange) error {
	g.fields, _ = ex.Response.Header.Lookup("Greeting")
	return g.sent.Send(ex)
}

// TestGreeted compiles, serves and explains a configuration with the sample room.
func TestGreeted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "greeting.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, "proxies: {a: {greeting: {file: greeting.txt}, routes: [{fixed_response: {status: 204}}, {path: /off, greeting: {enabled: false, file: x}, fixed_response: {status: 204}}]}}\n")
	p, problems := Compile(cfg, nil, House{Inputs: inputs.NewLoader(inputs.Options{}).Prepare(cfg, dir)}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for target, want := range map[string]string{"/": "hello", "/off": ""} {
		var g greeted
		ex := &exchange.Exchange{}
		prepare(ex, p.ports[0], &g, "GET", "a.example", target)
		p.ports[0].Front().Serve(ex)
		if g.status != 204 || g.fields != want {
			t.Errorf("%s: got %d with Greeting %q, want 204 with %q", target, g.status, g.fields, want)
		}
	}
	e := p.Explain(Question{Method: "GET", Scheme: "http", Authority: "a.example:8080", Target: "/"})
	if text := e.Text(); !strings.Contains(text, "greeting") {
		t.Errorf("explain does not name the filter:\n%s", text)
	}
}
