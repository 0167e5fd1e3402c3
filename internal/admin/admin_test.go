package admin

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/plan"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func start(t *testing.T) (*Server, *atomic.Bool) {
	t.Helper()
	ready := &atomic.Bool{}
	s := New(Options{
		Log:     slog.New(slog.DiscardHandler),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "numbers 1\n") }),
		NotReady: func() string {
			if ready.Load() {
				return ""
			}
			return "starting"
		},
		Status: func(string) any { return map[string]string{"state": "serving"} },
		Hosts:  func() []string { return []string{"gate.example.com"} },
	})
	if err := move(s, anyPort); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, ready
}

// prepare is Prepare for an address, in a house that serves already.
func prepare(s *Server, address netip.AddrPort) (control.Change, error) {
	cfg := config.New()
	cfg.Admin.Address = address
	return s.Prepare(&control.Next{Config: cfg, Previous: &plan.Plan{}})
}

// move is Prepare and Commit.
func move(s *Server, address netip.AddrPort) error {
	ch, err := prepare(s, address)
	if err == nil {
		ch.Commit()
	}
	return err
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// request sends one request as it is written and returns the status and the body.
func request(t *testing.T, address netip.AddrPort, head string) (int, http.Header, string) {
	t.Helper()
	c, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(c, "%s\r\nConnection: close\r\n\r\n", head)
	rs, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rs.StatusCode, rs.Header, string(body)
}

const (
	noSignIn = "sign-in is not available at the moment; use the admin socket\n"
	notOurs  = "this listener answers to addresses, localhost and the names in admin.hosts only\n"
)

func TestPages(t *testing.T) {
	s, ready := start(t)
	for _, test := range []struct {
		name, head string
		ready      bool
		status     int
		body       string
	}{
		{"metrics", "GET /metrics HTTP/1.1\r\nHost: localhost", false, 200, "numbers 1\n"},
		{"healthz while not ready", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:9080", false, 200, "ok\n"},
		{"livez", "GET /livez HTTP/1.1\r\nHost: [::1]:9080", false, 200, "ok\n"},
		{"readyz before the first plan", "GET /readyz HTTP/1.1\r\nHost: localhost", false, 503, "not ready: starting\n"},
		{"readyz", "GET /readyz HTTP/1.1\r\nHost: localhost", true, 200, "ready\n"},
		{"status, where nobody can sign in", "GET /status HTTP/1.1\r\nHost: localhost", true, 403, noSignIn},
		{"metrics through a proxy", "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1", true, 403, noSignIn},
		{"health through a proxy", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nVia: 1.1 proxy", true, 403, noSignIn},
		{"no such page", "GET /x HTTP/1.1\r\nHost: localhost", true, 404, "404 page not found\n"},
		{"another method", "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", true, 405, "this page is only read\n"},
		{"a name that points here", "GET /metrics HTTP/1.1\r\nHost: evil.example.com", true, 421, notOurs},
		{"a health page by such a name", "GET /healthz HTTP/1.1\r\nHost: localhost.example.com", true, 421, notOurs},
		{"metrics by another address", "GET /metrics HTTP/1.1\r\nHost: 192.0.2.1", true, 403, noSignIn},
		{"a health page by another address", "GET /livez HTTP/1.1\r\nHost: 192.0.2.1:9080", true, 200, "ok\n"},
		{"a health page by a name of ours", "GET /livez HTTP/1.1\r\nHost: Gate.example.com.", true, 403, noSignIn},
		{"a name under localhost", "GET /readyz HTTP/1.1\r\nHost: A.Localhost.:80", true, 200, "ready\n"},
		{"no host at all", "GET /readyz HTTP/1.0", true, 200, "ready\n"},
	} {
		ready.Store(test.ready)
		status, header, body := request(t, s.Address(), test.head)
		if status != test.status || body != test.body {
			t.Errorf("%s: got %d %q, want %d %q", test.name, status, body, test.status, test.body)
		}
		if status == 405 && header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", test.name, header.Get("Allow"))
		}
		if header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: may be stored", test.name)
		}
	}
	for _, path := range []string{"//metrics", "/./metrics", "/x/../metrics", "//", "/api", "/api//v1/version", "/api/v1/../v1/version", "//api/v1/version"} {
		if status, header, _ := request(t, s.Address(), "GET "+path+" HTTP/1.1\r\nHost: localhost"); status != 404 || header.Get("Location") != "" {
			t.Errorf("%s: got %d to %q, want 404", path, status, header.Get("Location"))
		}
	}
	if _, _, body := request(t, s.Address(), "GET / HTTP/1.1\r\nHost: localhost"); !strings.Contains(body, "/readyz") {
		t.Errorf("the index lists no pages: %s", body)
	}
}

func TestMoveKeepsTheOldAddressWhenTheNewIsBusy(t *testing.T) {
	s, _ := start(t)
	old := s.Address()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	err = move(s, netip.MustParseAddrPort(busy.Addr().String()))
	if err == nil || !strings.Contains(err.Error(), "open admin address "+busy.Addr().String()) {
		t.Errorf("got error %v, want one that names the address", err)
	}
	if status, _, _ := request(t, old, "GET /healthz HTTP/1.1\r\nHost: localhost"); status != 200 {
		t.Errorf("old address: got %d, want 200", status)
	}
}

func TestMoveOpensTheNewAndClosesTheOld(t *testing.T) {
	s, _ := start(t)
	old := s.Address()
	if err := move(s, netip.MustParseAddrPort("[::1]:0")); err != nil {
		t.Skip(err)
	}
	if status, _, _ := request(t, s.Address(), "GET /healthz HTTP/1.1\r\nHost: localhost"); status != 200 {
		t.Errorf("new address: got %d, want 200", status)
	}
	if c, err := net.Dial("tcp", old.String()); err == nil {
		c.Close()
		t.Error("the old address still answers")
	}
	if err := move(s, netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	if s.Address().IsValid() {
		t.Error("the listener is not off")
	}
}

func TestCancelClosesTheNewAddress(t *testing.T) {
	s, _ := start(t)
	old := s.Address()
	ch, err := prepare(s, netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Skip(err)
	}
	opened := ch.(*change).next.socket.Addr().String()
	ch.Cancel()
	if c, err := net.Dial("tcp", opened); err == nil {
		c.Close()
		t.Error("the cancelled address still answers")
	}
	if s.Address() != old {
		t.Errorf("got %v, want %v", s.Address(), old)
	}
}

func TestARequestMayMoveTheListenerThatItCameBy(t *testing.T) {
	var s *Server
	s = New(Options{Log: slog.New(slog.DiscardHandler), NotReady: func() string {
		if err := move(s, netip.MustParseAddrPort(testhouse.Address(t))); err != nil {
			t.Error(err)
		}
		return ""
	}})
	t.Cleanup(s.Close)
	if err := move(s, anyPort); err != nil {
		t.Fatal(err)
	}
	rs, err := http.Get("http://" + s.Address().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	if body, err := io.ReadAll(rs.Body); err != nil || string(body) != "ready\n" {
		t.Errorf("got %q, %v, want that it is ready", body, err)
	}
}
