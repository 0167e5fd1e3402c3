package exchange

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page")

//go:generate go test -run TestReasonPageIsFresh -update .

func TestReasonPageIsFresh(t *testing.T) {
	const path = "../../docs/reference/reasons.md"
	want := ReasonReference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run go generate ./internal/exchange", path)
	}
}

// TestReasons holds what the table promises: every reason has a word, and every
// reason that makes an answer has a status, a title and a hint.
func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("reason %d: word %q is empty or not its own", r, r)
		}
		seen[r.String()] = true
		if r.Status() > 0 && r.Status() != StatusClientClosed && (r.Title() == "" || r.Hint() == "") {
			t.Errorf("reason %s: an answer without a title or a hint", r)
		}
	}
}
