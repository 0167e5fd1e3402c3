package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/control"
	"headgate/internal/discovery/agent"
	"headgate/internal/ports"
	"headgate/internal/testhouse"
)

// mainConfig has one object of every kind, called main.
const mainConfig = `# by hand
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  main: {address: "127.0.0.1:1", protocol: http, active: false} # beside the old one
proxies:
  main:
    description: the shop
    virtual_hosts: [shop.example.com]
    use: [main]
    basic_auth:
      users:
        - {name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}
    routes:
      - path: /
        servers: [{url: "http://127.0.0.1:1"}] # there is none
tcp_proxies:
  main: {address: "127.0.0.1:1", servers: [{address: "127.0.0.1:1"}], active: false}
udp_proxies:
  main: {address: "127.0.0.1:1", servers: [{address: "127.0.0.1:1"}], active: false}
certificates:
  main: {cert_file: main.pem, key_file: main.key}
policies:
  main: {compression: {}}
lists:
  main: {entries: [192.0.2.0/24]}
bans:
  main: {when: [{path: [/.env], count: 3}]}
webhooks:
  chat: {url: "http://127.0.0.1:1/hook", secret: "a secret of sixteen or more"}
notices:
  phone: {gotify: {url: "http://127.0.0.1:1", token: s3cret-token}}
acme:
  main: {email: ops@example.com, directory: "https://127.0.0.1:1/directory", eab: {key_id: k, hmac_key: c2VjcmV0}}
`

// controlOf gives the house a control that runs until the test has ended.
func (h *house) controlOf(t testing.TB, text string) {
	t.Helper()
	dir := t.TempDir()
	h.file = filepath.Join(dir, "headgate.yaml")
	certstest.Write(t, dir, "main", certstest.Sign(t, certstest.Authority("test"), nil))
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ready := make(chan struct{})
	c, err := control.New(control.Options{
		Log: log, ConfigFile: h.file, StateDir: filepath.Join(dir, "state"), Docker: h.engines.Open, Agent: agent.Open, Ready: func() { close(ready) },
		Node: h.node, Share: h.share,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("the control did not start: %v", err)
	}
	t.Cleanup(func() {
		stop()
		<-ended
	})
	h.c = c
}

// request returns a request of the admin.
func (h *house) request(method, path string) *http.Request {
	h.t.Helper()
	rq, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL+Prefix+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+h.tokens["admin"])
	return rq
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

func TestAPortIsResetWithAnEventAndARecord(t *testing.T) {
	at := testhouse.Addresses(t, 1)[0]
	h := startWith(t, strings.Replace(mainConfig, "ports:\n", "ports:\n  web: {address: \""+at+"\", protocol: http}\n", 1))
	open, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	testhouse.Eventually(t, "the connection is counted", func() bool {
		return slices.ContainsFunc(h.c.Status().Ports, func(p ports.State) bool { return p.Name == "web" && p.Connections == 1 })
	})
	_, out := h.does("POST", "/ports/web/reset", `{"why":"stuck"}`, 200, "", "as: editor")
	if out["closed"] != 1.0 || out["state"] != "listening" || out["address"] != at {
		t.Errorf("got %v", out)
	}
	open.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open still: %v", err)
	}
	_, out = h.does("GET", "/audit?object=ports/web", "", 200, "", "as: admin")
	if text := fmt.Sprint(out["items"]); !strings.Contains(text, "port.reset") || !strings.Contains(text, "token:editor") || !strings.Contains(text, "stuck") {
		t.Errorf("audit: %s", text)
	}
	_, out = h.does("GET", "/events/history?types=port.reset", "", 200, "", "as: viewer")
	if text := fmt.Sprint(out["items"]); !strings.Contains(text, "closed:1") || !strings.Contains(text, "token:editor") {
		t.Errorf("events: %s", text)
	}
	h.does("POST", "/ports/none/reset", `{}`, 404, "not_found", "as: editor")
	for _, kind := range []string{"ports", "tcp_proxies", "udp_proxies"} { // none is active
		h.does("POST", "/"+kind+"/main/reset", `{}`, 409, "not_open", "as: editor")
	}
}
