package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/certs/certstest"
	"headgate/internal/control"
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
webhooks:
  chat: {url: "http://127.0.0.1:1/hook", secret: "a secret of sixteen or more"}
acme:
  main: {email: ops@example.com, eab: {key_id: k, hmac_key: c2VjcmV0}}
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
	c, err := control.New(control.Options{Log: log, ConfigFile: h.file, StateDir: filepath.Join(dir, "state"), Docker: h.engines.Open, Ready: func() { close(ready) }})
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
