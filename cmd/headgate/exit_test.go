package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAChangeThatCameTooLateHasItsOwnExitCode applies a document while somebody else
// changes the configuration between what the command reads and what it writes.
func TestAChangeThatCameTooLateHasItsOwnExitCode(t *testing.T) {
	t.Setenv(tokenVariable, "")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		switch {
		case rq.Method == "GET" && rq.URL.Path == "/api/v1/config":
			fmt.Fprint(w, `{"etag":"\"a\"","documents":[{"name":"/etc/headgate.yaml","text":""}]}`)
		case rq.Method == "PUT" && rq.Header.Get("If-Match") == `"a"`:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"type":"about:blank","status":412,"code":"stale","pointer":"/proxies/a.b/routes/0","detail":"it was changed meanwhile","remedy":"read it again and repeat the change"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log strings.Builder
	code := execute([]string{"apply", file, "--admin", s.URL}, stdio{strings.NewReader(""), &out, &log})
	want := `headgate: proxies["a.b"].routes[0]: it was changed meanwhile; read it again and repeat the change` + "\n"
	if code != exitStale || log.String() != want || out.Len() > 0 {
		t.Errorf("got %d, %q and %q, want %d and %q", code, out.String(), log.String(), exitStale, want)
	}
}
