package lint_test

import (
	"os"
	"testing"

	"headgate/internal/lint"
)

// TestHouse holds this module to the rules. It reads every file itself, so the
// go command knows when a cached result no longer stands.
func TestHouse(t *testing.T) {
	tree, err := lint.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range lint.Check(tree) {
		t.Error(finding)
	}
}
