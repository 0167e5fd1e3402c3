package exchange

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page")

//go:generate go test -run TestReasonPageIsFresh -update .

func TestReasonPageIsFresh(t *testing.T) {
	const path = "../../docs/reference/reasons.md"
	want := reasonPage()
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

// reasonPage returns the reference page of all reasons, in Markdown.
func reasonPage() string {
	var b strings.Builder
	b.WriteString(`# Reasons

<!-- Generated from internal/exchange/reason.go by "go generate ./internal/exchange". Do not edit. -->

A response that headgate generates, or that is cut off, has a reason. The same keyword is in the access log, in
metrics, in the body of the response and in its ` + "`Proxy-Status`" + ` header (RFC 9209). The body is text, HTML or
` + "`application/problem+json`" + ` (RFC 9457), depending on what the client accepts. It contains the request ID, but never
the address of a server.

| reason | status | connection | message |
|---|---|---|---|
`)
	for _, r := range Reasons() {
		status, after := "–", "kept"
		if r.Status() > 0 {
			status = fmt.Sprint(r.Status())
		}
		if r.Status() == StatusClientClosed {
			status += " (log only)"
		}
		if r.Closes() {
			after = "closed"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r, status, after, r.Hint())
	}
	return b.String()
}
