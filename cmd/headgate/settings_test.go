package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

// TestSettingsForOperatorsAreUsed holds that webhooks, the sign-in provider and the
// names of the admin listener come into use with a change, and go with another.
func TestSettingsForOperatorsAreUsed(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	got := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) {
		body, _ := io.ReadAll(rq.Body)
		if rq.Header.Get("Webhook-Signature") != "" {
			got <- string(body)
		}
	}))
	defer receiver.Close()
	dir, admin := t.TempDir(), testhouse.Address(t)
	file, state := filepath.Join(dir, "headgate.yaml"), filepath.Join(dir, "state")
	write := func(more, adminMore string) {
		t.Helper()
		config := "version: 1\nadmin: {address: \"" + admin + "\"" + adminMore + "}\naccess_log: {enabled: false}\n" + more
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const named = `, hosts: [gate.example.com], oidc: {issuer: "https://login.example.com", client_id: a, client_secret: b, redirect_url: "https://gate.example.com/in", roles: [{claim: groups, value: ops, role: admin}]}`
	write("webhooks: {ops: {url: \""+receiver.URL+"\", secret: 0123456789abcdef, events: [config.*]}}\n", named)
	m := manage(t, file, state)
	defer m.end()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	// Settings come into use beside the change.
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !holds(); {
			if time.Now().After(end) {
				t.Fatalf("not in time: %s", what)
			}
		}
	}
	provider := func() bool {
		_, out := m.call("GET", "/setup", "")
		return out["oidc"] == true
	}
	eventually("the provider is used", provider)
	status := func(host string) int {
		rq, _ := http.NewRequestWithContext(t.Context(), "GET", m.base+"/setup", nil)
		rq.Host = host
		rs, err := client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		return rs.StatusCode
	}
	if a, b := status("gate.example.com"), status("evil.example.com"); a != 200 || b != 421 {
		t.Errorf("a name of the listener gets %d, another %d, want 200 and 421", a, b)
	}
	m.setUp(state)
	eventually("the webhook is used", func() bool {
		status, _ := m.call("GET", "/webhooks/ops/state", "")
		return status == 200
	})
	if err := m.house.Reload(); err != nil {
		t.Fatal(err)
	}
	for body := range got {
		if strings.Contains(body, "config.applied") {
			break
		}
	}
	write("", "")
	if err := m.house.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually("the provider is gone", func() bool { return !provider() })
	if n := status("gate.example.com"); n != 421 {
		t.Errorf("a name that is gone gets %d, want 421", n)
	}
	if status, _ := m.call("GET", "/webhooks/ops/state", ""); status != 404 {
		t.Errorf("a webhook that is gone: %d", status)
	}
}
