package api

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheGuideWorks runs the examples of the guide, one after the other in one shell.
func TestTheGuideWorks(t *testing.T) {
	for _, program := range []string{"sh", "curl", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	h := start(t)
	page, err := os.ReadFile("../../../docs/guides/api.md")
	if err != nil {
		t.Fatal(err)
	}
	script, blocks := "set -eu\n", 0
	for i, part := range strings.Split(string(page), "```sh run\n") {
		if block, _, ok := strings.Cut(part, "```"); i > 0 && ok {
			script += block
			blocks++
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append(os.Environ(), "API="+h.server.URL+Prefix, "TOKEN="+h.tokens["admin"])
	out, err := cmd.CombinedOutput()
	if err != nil || blocks < 6 {
		t.Fatalf("%d examples: %v\n%s", blocks, err, out)
	}
	for _, want := range []string{"blog.example.com", "what we write", "127.0.0.1:4001", "news.example.com", "00000005", "a new host"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the answers lack %q:\n%s", want, out)
		}
	}
	if h.text() != mainConfig {
		t.Errorf("after the roll-back the document is\n%s", h.text())
	}
}
