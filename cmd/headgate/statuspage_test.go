package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/control"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// The days that a certificate has left are whole ones, and hours at its end.
func TestStatusTellsWhatACertificateHasLeft(t *testing.T) {
	for want, in := range map[string]time.Duration{
		"89 days": 90*24*time.Hour - time.Minute, "2 days": 49 * time.Hour, "47h": 48*time.Hour - time.Minute,
		"0h": 30 * time.Minute, "none": -time.Hour,
	} {
		if got := left(time.Now().Add(in)); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := left(time.Time{}); got != "-" {
		t.Errorf("without a certificate: got %q", got)
	}
}

// TestAnUnansweredCheckHasNoStatus holds that nobody takes 0 for an answer.
func TestAnUnansweredCheckHasNoStatus(t *testing.T) {
	checked := health.Status{Results: []health.Result{{Healthy: true, Status: 204}, {Error: "connection refused"}}}
	page := statusPage{Status: control.Status{Proxies: []plan.ProxyState{{Name: "shop", Routes: []plan.RouteState{{Path: "/", Servers: []plan.ServerState{{URL: "http://a", Status: checked}}}}}}}}
	var out strings.Builder
	if err := page.print(&out, true, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"passed   204     0.0 ms", "failed   -       0.0 ms  connection refused"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestTheOriginOfADocumentIsItsURL(t *testing.T) {
	url := "https://cmdb.example.com/headgate.yaml"
	for text, want := range map[string]string{"": "-", url: url, "container app@web7": "container app@web7"} {
		if got := origin(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if got := origin(file + ":4:9"); got != "headgate.yaml:4:9" {
		t.Errorf("a file: got %q", got)
	}
}
