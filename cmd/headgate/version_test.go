package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestVersionTellsOfANewerRelease asks a server as a release does.
func TestVersionTellsOfANewerRelease(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) { w.Write([]byte("1.3.0\n")) }))
	defer s.Close()
	defer func(v, h string) { version, homepage = v, h }(version, homepage)
	ask := func(is, at string, args ...string) string {
		t.Helper()
		version, homepage = is, at
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"version"}, args...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			return err.Error()
		}
		return out.String()
	}
	for _, c := range []struct {
		is, at string
		args   []string
		want   string
	}{
		{"1.2.9", s.URL, []string{"--check"}, "headgate 1.3.0 is available: " + s.URL},
		{"1.3.0", s.URL, []string{"--check"}, "this is the latest release"},
		{"1.2.9", s.URL, []string{"--check", "-o", "json"}, `"newer": true`},
		{"1.2.9", "", []string{"--check"}, "it was not made by make release"},
		{"1.2.9", "https://127.0.0.1:1", []string{"--check"}, "the latest release cannot be read from https://127.0.0.1:1/releases/latest/download/VERSION"},
		{"1.2.9", s.URL, nil, "headgate 1.2.9"},
	} {
		if got := ask(c.is, c.at, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%s at %s %v: got %q, want %q", c.is, c.at, c.args, got, c.want)
		}
	}
	if got := ask("1.2.9", s.URL); strings.Contains(got, "1.3.0") {
		t.Errorf("it asks without being told to: %q", got)
	}
}
