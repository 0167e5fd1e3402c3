package plan

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"headgate/internal/certs/certstest"
	"headgate/internal/config"
	"headgate/internal/plan/inputs"
	"headgate/internal/store/local"
)

// TestWhoOnlyLooksStartsNothing holds that loading, compiling and explaining a
// configuration with everything that runs in the background asks nobody, starts no
// goroutine, opens no socket and writes no file.
func TestWhoOnlyLooksStartsNothing(t *testing.T) {
	var asked atomic.Int32
	outside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer outside.Close()
	dir, state := t.TempDir(), t.TempDir()
	authority := certstest.Sign(t, certstest.Authority("test authority"), nil)
	template := &x509.Certificate{DNSNames: []string{"shop.example"}, OCSPServer: []string{outside.URL}}
	certstest.Write(t, dir, "main", certstest.Sign(t, template, &authority))
	text := fmt.Sprintf(`version: 1
ports: {web: {address: "0.0.0.0:8443", protocol: https}}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies:
  shop:
    client_ip: {cdn: [cloudflare, bunny]}
    forward_auth: {url: %[1]q}
    routes:
      - {health_check: {path: /healthz, interval: 1s}, sticky_cookie: {enabled: true, name: sid}, servers: [{url: %[1]q}]}
tcp_proxies: {db: {address: "0.0.0.0:5432", servers: [{address: "127.0.0.1:1"}], health_check: {interval: 1s}}}
`, outside.URL)
	file := filepath.Join(dir, "headgate.yaml")
	cfg, doc, problems := config.Load(file, []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	running, sockets := goleak.IgnoreCurrent(), openSockets(t)

	loader := inputs.NewLoader(inputs.Options{Values: local.Files{Dir: state}})
	set := loader.Prepare(cfg, dir)
	p, problems := Compile(cfg, nil, House{Values: local.Files{Dir: state}, Inputs: set}, doc.Report())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := p.Explain(Question{Method: "GET", Scheme: "https", Authority: "shop.example:8443", Target: "/"})
	if e.Proxy != "shop" || len(e.Servers) != 1 {
		t.Errorf("explained: %+v", e)
	}
	if err := goleak.Find(running); err != nil {
		t.Error(err)
	}
	if now := openSockets(t); now != sockets {
		t.Errorf("%d sockets are open, want %d", now, sockets)
	}
	p.Retire(nil)
	set.Cancel()
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times, want never", n)
	}
	if left, _ := os.ReadDir(state); len(left) != 0 {
		t.Errorf("the state directory holds %v, want nothing", left)
	}
}

// openSockets counts the sockets of the process, where the system tells.
func openSockets(t *testing.T) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
