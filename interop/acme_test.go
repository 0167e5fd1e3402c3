package interop

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// portOf returns the number of an address.
func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// acmeState is what /status tells of a certificate by ACME.
type acmeState struct {
	Name, State string
	Trouble     struct{ Code, Message, Hint string }
	Has         []string
}

// acme returns how the certificates by ACME stand.
func (g *gate) acme() []acmeState {
	var status struct{ ACME []acmeState }
	if g.status("", &status) != nil {
		return nil
	}
	return status.ACME
}

// until waits until a certificate stands so.
func (g *gate) until(name, state string) acmeState {
	g.t.Helper()
	var last []acmeState
	for end := time.Now().Add(2 * patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		last = g.acme()
		for _, s := range last {
			if s.Name == name && s.State == state {
				return s
			}
		}
	}
	g.t.Fatalf("%s is not %s: %+v\n%s", name, state, last, g.log)
	return acmeState{}
}

// issuer returns who has issued the certificate that a name gets.
func issuer(t *testing.T, address, name string) string {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	leaf := c.ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(name); err != nil {
		return "another name: " + err.Error()
	}
	return leaf.Issuer.CommonName
}

// TestCertificatesComeByThemselves takes the way of somebody who replaces another
// proxy: an order before the ports are there is blocked and costs nothing, and goes
// on by itself when they open, behind a redirect to HTTPS, a filter that denies
// everybody, and maintenance.
func TestCertificatesComeByThemselves(t *testing.T) {
	web, secure, admin := free(t), free(t), free(t)
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, web), HTTPSPort: portOf(t, secure), BadNonces: 30})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "server "+r.URL.Path) }))
	defer server.Close()
	config := func(ports string) string {
		return fmt.Sprintf(`version: 1
admin: {address: %q}
ports: {%s}
acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, default: true, resolvers: [%q], http_port: %d, https_port: %d}
  alpn: {directory: %q, ca_file: %q, challenge: tls-alpn-01, resolvers: [%q], https_port: %d}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    redirect_http_to_https: true
    ip_filter: {deny: [0.0.0.0/0]}
    routes: [{servers: [{url: %q}]}]
  blog:
    virtual_hosts: [blog.example.com]
    maintenance: {}
    acme: alpn
    routes: [{servers: [{url: %q}]}]
  plain:
    virtual_hosts: [plain.example.com]
    acme: none
    routes: [{servers: [{url: %q}]}]
`, admin, ports, authority.Directory, authority.CAFile, authority.Names, portOf(t, web), portOf(t, secure),
			authority.Directory, authority.CAFile, authority.Names, portOf(t, secure), server.URL, server.URL, server.URL)
	}
	g := start(t, config(fmt.Sprintf("web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}", free(t), free(t))))
	blocked := g.until("shop.example.com", "blocked")
	g.until("blog.example.com", "blocked") // else its first look may be under way when an order is asked for
	if blocked.Trouble.Code != "port_not_open" || !strings.Contains(blocked.Trouble.Hint, "continues when the port opens") {
		t.Errorf("got %+v", blocked.Trouble)
	}
	if n := authority.Orders(); n != 0 {
		t.Errorf("%d orders were placed before the ports were open", n)
	}
	if page := get(t, admin, admin, "/metrics"); !strings.Contains(page, `headgate_certificate_state{certificate="shop.example.com",state="blocked"} 1`) {
		t.Error("metrics do not tell that there is no certificate")
	}
	for _, args := range [][]string{{"acme", "status"}, {"acme", "status", "-o", "json"}, {"acme", "status", "shop.example.com"}, {"status"}} {
		out, err := exec.Command(os.Getenv(binaryFolder), append(args, "--admin", admin)...).CombinedOutput()
		why := "port_not_open"
		if args[0] == "status" {
			why = "headgate acme status" // which has the code
		}
		if err != nil || !strings.Contains(string(out), "blocked") || !strings.Contains(string(out), why) {
			t.Errorf("headgate %v: %v\n%s", args, err, out)
		}
	}
	for _, args := range [][]string{{"preflight", "shop.example.com"}, {"order", "--timeout", "1m"}} {
		out, err := exec.Command(os.Getenv(binaryFolder), append(append([]string{"acme"}, args...), "--admin", admin)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "blocked") || !strings.Contains(string(out), "port_not_open") {
			t.Errorf("headgate acme %v: %v\n%s", args, err, out)
		}
	}
	if n := authority.Orders(); n != 0 {
		t.Errorf("%d orders were placed for what is blocked", n)
	}
	g.apply(config(fmt.Sprintf("web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}", web, secure)))
	g.until("shop.example.com", "valid")
	g.until("blog.example.com", "valid")
	for _, name := range []string{"shop.example.com", "blog.example.com"} {
		if got := issuer(t, secure, name); !strings.HasPrefix(got, "Pebble") {
			t.Errorf("%s has a certificate of %q", name, got)
		}
	}
	told, err := exec.Command(os.Getenv(binaryFolder), "acme", "status", "shop.example.com", "--admin", admin).CombinedOutput()
	if err != nil || !strings.Contains(string(told), ": issued\n") || !strings.Contains(string(told), "every name is ours") || strings.Contains(string(told), "blog") {
		t.Errorf("acme status: %v\n%s", err, told)
	}
	for _, s := range g.acme() {
		if s.Name == "plain.example.com" {
			t.Error("a proxy with acme: none got an order")
		}
	}
	if body := get(t, web, "plain.example.com", "/.well-known/acme-challenge/of-the-server"); body != "server /.well-known/acme-challenge/of-the-server" {
		t.Errorf("a challenge of the server's got %q", body)
	}

	for _, step := range []struct{ args, want string }{
		{"preflight shop.example.com", "shop.example.com by http-01"},
		{"order", "all ACME certificates are valid"},
		{"renew shop.example.com", ": issued\n"},
		{"rollover main", "replaced"},
		{"renew shop.example.com -o json", `"state": "valid"`},
	} {
		args := append(append([]string{"acme"}, strings.Fields(step.args)...), "--admin", admin)
		out, err := exec.Command(os.Getenv(binaryFolder), args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("headgate %v: %v, want %q in\n%s", args, err, step.want, out)
		}
	}
	if body := get(t, web, "shop.example.com", "/.well-known/acme-challenge/stranger"); body != "no such challenge\n" {
		t.Errorf("a stranger's challenge got %q", body)
	}

	// The certificates outlive a kill, the authority and the entries.
	orders := authority.Orders()
	g.kill()
	authority.Fail(1 << 20)
	g.start(strings.Replace(config(fmt.Sprintf("web: {address: %q, protocol: http}, websecure: {address: %q, protocol: https}", web, secure)), "default: true, ", "", 1))
	if got := issuer(t, secure, "shop.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("after a kill shop.example.com has a certificate of %q", got)
	}
	if n := authority.Orders(); n != orders {
		t.Errorf("%d more orders after a restart", n-orders)
	}
	out, err := exec.Command("curl", "-sk", "--resolve", "shop.example.com:"+strconv.Itoa(portOf(t, secure))+":127.0.0.1", "-o", "/dev/null", "-w", "%{http_code}",
		"https://shop.example.com:"+strconv.Itoa(portOf(t, secure))+"/").Output()
	if err != nil || string(out) != "403" {
		t.Errorf("curl got %s, %v", out, err)
	}
}

// get asks a port for a path of a host.
func get(t *testing.T, address, host, path string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
