package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// takeover is a headgate that runs beside another proxy.
type takeover struct {
	*gate
	admin, config string
	// The addresses of the ports, beside the other proxy and in its place.
	web, webTaken, secure, secureTaken string
}

// beside starts a headgate with an http and an https port. rest is the rest of its
// configuration.
func beside(t *testing.T, rest string) *takeover {
	t.Helper()
	at := func() string { return "127.0.0.1:" + lasting(t) }
	g := &takeover{gate: prepare(t), admin: free(t), web: at(), webTaken: at(), secure: at(), secureTaken: at()}
	g.config = fmt.Sprintf("version: 1\nadmin: {address: %q}\naccess_log: {enabled: false}\nports:\n  web: {address: %q, protocol: http}\n  secure: {address: %q, protocol: https}\n%s", g.admin, g.web, g.secure, rest)
	g.start(g.config)
	return g
}

// command prepares a command of headgate to this one.
func (g *takeover) command(args ...string) *exec.Cmd {
	return exec.Command(os.Getenv(binaryFolder), append(args, "--admin", g.admin)...)
}

// does runs a command that succeeds.
func (g *takeover) does(args ...string) string {
	g.t.Helper()
	out, err := g.command(args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("headgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// swap are the arguments of the cutover to the other addresses.
func (g *takeover) swap(more ...string) []string {
	number := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	return append([]string{"cutover", "--http", number(g.webTaken), "--https", number(g.secureTaken), "--no-dns"}, more...)
}

// either dials the first of two addresses that takes the connection.
func either(addresses ...string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
			for _, a := range addresses {
				if c, err = new(net.Dialer).DialContext(ctx, "tcp", a); !errors.Is(err, syscall.ECONNREFUSED) {
					return c, err
				}
			}
		}
		return nil, err
	}
}

// TestCutoverUnderLoad takes over from a proxy that lets go while headgate waits, and goes
// back, under load. A client that finds an address closed goes to the other one; a request
// that was begun and not answered is lost.
func TestCutoverUnderLoad(t *testing.T) {
	g := beside(t, fmt.Sprintf("proxies:\n  all: {routes: [{servers: [{url: %q}]}]}\n", echoRequests(t)))
	old, err := net.Listen("tcp", g.webTaken)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	m := &mixed{t: t, stop: make(chan struct{})}
	trust := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}
	m.run("HTTP/1.1, kept connections", 6, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{DialContext: either(g.web, g.webTaken)}
		return posts(tr, "http://gate/"), tr.CloseIdleConnections
	})
	m.run("HTTP/1.1, each on a new connection", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{DialContext: either(g.web, g.webTaken), DisableKeepAlives: true}
		return posts(tr, "http://gate/"), tr.CloseIdleConnections
	})
	m.run("HTTP/2", 4, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{DialContext: either(g.secure, g.secureTaken), TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
		return posts(tr, "https://gate/"), tr.CloseIdleConnections
	})
	m.progress()

	cut := g.command(g.swap("--wait", "--yes")...)
	said := &record{}
	cut.Stdout, cut.Stderr = said, said
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cutover waits and names who has the port", func() bool {
		return strings.Contains(said.String(), "waiting up to") && strings.Contains(said.String(), "interop.test (pid ")
	})
	m.progress()
	g.apply(g.config + "  other: {virtual_hosts: [other.example.com], routes: [{fixed_response: {status: 204}}]}\n") // does not matter to it
	gone := time.Now()
	old.Close()
	free := time.Duration(0)
	eventually(t, "headgate has the address", func() bool {
		c, err := net.Dial("tcp", g.webTaken)
		if err != nil {
			return false
		}
		free = time.Since(gone)
		c.Close()
		return true
	})
	if err := cut.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m.progress()
	g.does("confirm")
	m.progress()
	g.does("cutover", "--back", "--yes")
	if l, err := net.Listen("tcp", g.webTaken); err != nil {
		t.Errorf("the address is not free after the way back: %v", err)
	} else {
		l.Close()
	}
	m.progress()
	close(m.stop)
	m.all.Wait()
	var all, lost int64
	for _, k := range m.kinds {
		all, lost = all+k.rounds.Load(), lost+k.lost.Load()
	}
	t.Logf("%d requests over a cutover and the way back, %d lost; nobody listened for %v", all, lost, free.Round(time.Millisecond))
}

// TestAKilledCutoverIsTakenBack kills headgate between the swap and the confirmation: it
// starts with the ports before, and the old proxy can have its own.
func TestAKilledCutoverIsTakenBack(t *testing.T) {
	g := beside(t, "proxies: {all: {routes: [{fixed_response: {status: 200, body: here}}]}}\n")
	before, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	g.does(g.swap("--yes")...)
	if got := get(t, g.webTaken, "x", "/"); got != "here" {
		t.Fatalf("after the cutover: %q", got)
	}
	g.kill()
	now, err := os.ReadFile(g.file)
	if err != nil || string(now) == string(before) {
		t.Fatalf("the document did not change: %v", err)
	}
	began := time.Now()
	g.start(string(now))
	took := time.Since(began)
	if got := get(t, g.web, "x", "/"); got != "here" {
		t.Errorf("after the start: %q", got)
	}
	for _, address := range []string{g.webTaken, g.secureTaken} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("the old proxy cannot have its address: %v", err)
			continue
		}
		l.Close()
	}
	if after, err := os.ReadFile(g.file); err != nil || string(after) != string(before) {
		t.Errorf("the document is %s, %v", after, err)
	}
	t.Logf("killed between swap and confirmation: the ports before serve %v after the start", took.Round(time.Millisecond))
}

// TestAnUnhealthyCutoverIsTakenBack takes servers away after the swap.
func TestAnUnhealthyCutoverIsTakenBack(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up") }))
	defer server.Close()
	g := beside(t, fmt.Sprintf("proxies: {all: {routes: [{servers: [{url: %q}], health_check: {path: /, interval: 1s, timeout: 500ms}}]}}\n", server.URL))
	eventually(t, "the server is healthy", func() bool { return get(t, g.web, "x", "/") == "up" })
	cut := g.command(g.swap("--confirm", "10m")...)
	said := &record{}
	cut.Stdin, cut.Stdout, cut.Stderr = strings.NewReader("yes\n"), said, said
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it watches", func() bool { return strings.Contains(said.String(), "watching until") })
	if !strings.Contains(said.String(), "less than 50% of the servers that are healthy now remain healthy") {
		t.Errorf("the bound is not shown: %s", said)
	}
	server.Close()
	down := time.Now()
	err := cut.Wait()
	if err == nil || !strings.Contains(said.String(), "0 of the 1 servers that were healthy remain healthy") || !strings.Contains(said.String(), "the cutover was reverted") {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("taken back %v after the last server has gone", time.Since(down).Round(time.Millisecond))
	if _, err := net.Dial("tcp", g.webTaken); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port did not move back: %v", err)
	}
}

// TestOrdersGoOnAfterTheCutover holds that a certificate that was blocked beside the old
// proxy comes by itself when headgate has its ports.
func TestOrdersGoOnAfterTheCutover(t *testing.T) {
	web, secure := "127.0.0.1:"+lasting(t), "127.0.0.1:"+lasting(t)
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, web), HTTPSPort: portOf(t, secure)})
	g := beside(t, fmt.Sprintf(`acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, default: true, resolvers: [%q], http_port: %d, https_port: %d}
proxies: {shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: here}}]}}
`, authority.Directory, authority.CAFile, authority.Names, portOf(t, web), portOf(t, secure)))
	g.webTaken, g.secureTaken = web, secure
	g.until("shop.example.com", "blocked")
	out := g.does(g.swap("--yes")...)
	if !strings.Contains(out, "certificates: shop.example.com is blocked") {
		t.Errorf("the preconditions do not tell that a certificate is blocked:\n%s", out)
	}
	swapped := time.Now()
	g.until("shop.example.com", "valid")
	took := time.Since(swapped)
	if got := issuer(t, secure, "shop.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("the certificate is of %q", got)
	}
	g.does("confirm")
	t.Logf("the certificate came %v after the cutover, by %d orders", took.Round(time.Millisecond), authority.Orders())
}
