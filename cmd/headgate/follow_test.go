package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"headgate/internal/setting/shown"
)

func TestFollowReadsEventsUntilTheStreamEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.Header.Get("Authorization") != "Bearer hg_x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "retry: 3000\n\n: \n\nid: 1\nevent: request\ndata: {\"a\":1}\n\n: \n\nevent: gap\ndata: {}\n\n")
	}))
	defer server.Close()
	to, err := newRemote(server.URL, "there", (&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	var got []string
	each := func(kind string, data []byte) error {
		got = append(got, kind+" "+string(data))
		return nil
	}
	if err := to.follow(t.Context(), "/events", each); err == nil || !strings.Contains(err.Error(), tokenVariable) {
		t.Errorf("without a token: %v, want a word of it", err)
	}
	options := to.options
	options.Token = "hg_x"
	if err := to.set(options); err != nil {
		t.Fatal(err)
	}
	if err := to.follow(t.Context(), "/events", each); err == nil || !strings.Contains(err.Error(), "the stream has ended") {
		t.Errorf("got %v, want the end told", err)
	}
	if want := []string{`request {"a":1}`, "gap {}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	stop := errors.New("enough")
	if err := to.follow(context.Background(), "/events", func(string, []byte) error { return stop }); err != stop {
		t.Errorf("got %v, want the error of each", err)
	}
}

func TestPrintableDrivesNoTerminal(t *testing.T) {
	if got := printable("a\x1b[2J\tö\u009b\u202e"); got != "a?[2J?ö??" {
		t.Errorf("got %q", got)
	}
}

// TestAHostileHeadgateDrivesNoTerminal asks one whose every text has escape sequences of
// terminals, and turns text about.
func TestAHostileHeadgateDrivesNoTerminal(t *testing.T) {
	const evil = "\x1b]0;x\a\x1b[2J\u009b31m\u202e\rfake"
	texts, err := json.Marshal(map[string]any{
		"detail": evil, "remedy": evil, "pointer": "/" + evil, "state": evil, "revision": evil, "name": evil, "names": []string{evil},
		"sources": []any{map[string]any{"name": evil, "issues": []any{map[string]any{"provider": evil, "message": evil}}}},
		"proxies": []any{map[string]any{"name": evil, "virtual_hosts": []string{evil}}},
		"items":   []any{map[string]any{"name": evil, "host": evil, "path": evil, "user_agent": evil, "text": evil}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []struct {
		status     int
		kind, body string
	}{
		{200, "application/json", string(texts)},
		{403, "application/problem+json", string(texts)},
		{500, "text/plain", evil},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
			if rq.URL.Path == "/instance" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", answer.kind)
			w.WriteHeader(answer.status)
			io.WriteString(w, answer.body)
		}))
		for _, args := range [][]string{
			{"status"}, {"status", "-o", "json"}, {"health"}, {"logs"}, {"logs", "-o", "json"}, {"events"}, {"user", "list"}, {"user", "list", "-o", "json"},
			{"token", "create", "a", "--role", "viewer"}, {"acme", "status"}, {"acme", "status", "-o", "json"}, {"certificate", "list"}, {"revisions"}, {"confirm"}, {"port", "reset", "a"},
		} {
			var out, log strings.Builder
			t.Setenv(tokenVariable, "hg_x")
			execute(append(args, "--admin", s.URL), stdio{strings.NewReader(""), &out, &log})
			if all := out.String() + log.String(); strings.ContainsFunc(all, func(r rune) bool { return r != '\n' && shown.Drives(r) }) {
				t.Errorf("%v of %d: got %q", args, answer.status, all)
			} else if !strings.Contains(all, "fake") && answer.status != 200 {
				t.Errorf("%v of %d tells nothing: %q", args, answer.status, all)
			}
		}
		s.Close()
	}
}

func TestPlainJSONSaysTheSame(t *testing.T) {
	const text = "[\n  \"\u009b\u202e\U000e0041 ö ä\"\n]"
	got := plainJSON([]byte(text))
	var want, have []string
	if json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal(got, &have) != nil || !slices.Equal(want, have) {
		t.Errorf("got %s", got)
	}
	if string(got) != "[\n  \"\\u009b\\u202e\\udb40\\udc41 ö ä\"\n]" {
		t.Errorf("got %s", got)
	}
}
