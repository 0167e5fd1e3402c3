package exchange

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryReasonHasAPage holds docs/errors: one page for each reason, with its status
// and what to do, and a list of all of them.
func TestEveryReasonHasAPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "errors")
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"README": true}
	for _, r := range Reasons() {
		known[r.String()] = true
		text, err := os.ReadFile(filepath.Join(dir, r.String()+".md"))
		if err != nil {
			t.Errorf("docs/errors has no page for %s: write its cause and what to do", r)
			continue
		}
		status := "Status: that of the response"
		if r.Status() != 0 {
			status = fmt.Sprintf("Status: %d ", r.Status())
		}
		for _, want := range []string{"# " + r.String() + "\n", status, "\n## Cause\n", "\n## What to do\n\n- "} {
			if !strings.Contains(string(text), want) {
				t.Errorf("docs/errors/%s.md lacks %q", r, want)
			}
		}
		if !strings.Contains(string(list), fmt.Sprintf("| [`%s`](%s.md) |", r, r)) {
			t.Errorf("docs/errors/README.md does not list %s", r)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !known[strings.TrimSuffix(filepath.Base(page), ".md")] {
			t.Errorf("%s: there is no such reason", page)
		}
	}
}
