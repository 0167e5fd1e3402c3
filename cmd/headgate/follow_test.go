package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
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
	to := newRemote(server.URL, "there", (&net.Dialer{}).DialContext)
	defer to.close()
	var got []string
	each := func(kind string, data []byte) error {
		got = append(got, kind+" "+string(data))
		return nil
	}
	if err := to.follow(t.Context(), "/events", each); err == nil || !strings.Contains(err.Error(), tokenVariable) {
		t.Errorf("without a token: %v, want a word of it", err)
	}
	to.token = "hg_x"
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
	if got := printable("a\x1b[2J\tö\u009b"); got != "a?[2J?ö?" {
		t.Errorf("got %q", got)
	}
}
