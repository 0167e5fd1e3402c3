package interop

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// needed returns a program of a Debian package. Where HEADGATE_TOOLS is "required"
// it has to be there: .ci/steps installs it.
func needed(t *testing.T, program, debian string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	if os.Getenv("HEADGATE_TOOLS") == "required" {
		t.Fatalf("%s is missing: install Debian's %s", program, debian)
	}
	t.Skipf("%s is missing: Debian has it in %s", program, debian)
	return ""
}

// background runs a program until the test ends.
func background(t *testing.T, path string, args ...string) *record {
	t.Helper()
	out := &record{}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(path), out)
		}
	})
	return out
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("it never came true: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// command runs a program to its end and returns what it prints.
func command(t *testing.T, input, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(path), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// port returns the port number of an address.
func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// TestRedis holds that Redis works through a TCP proxy, over changes of everything
// around it.
func TestRedis(t *testing.T) {
	t.Parallel()
	server, cli := needed(t, "redis-server", "redis-server"), needed(t, "redis-cli", "redis-tools")
	at, through := free(t), free(t)
	background(t, server, "--port", port(at), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	eventually(t, "redis listens", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	config := func(i int) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
tcp_proxies:
  redis: {address: %q, servers: [{address: %q}], idle_timeout: %ds, health_check: {interval: 1s}}
  other%d: {address: %q, servers: [{address: %q}]}
`, through, at, 60+i, i, free(t), at)
	}
	g := start(t, config(0))
	ask := func(input string, args ...string) string {
		return command(t, input, cli, append([]string{"-h", "127.0.0.1", "-p", port(through)}, args...)...)
	}
	if got := ask("", "PING"); got != "PONG\n" {
		t.Errorf("got %q", got)
	}
	large := strings.Repeat("0123456789", 500_000)
	if got := ask(large, "-x", "SET", "large"); got != "OK\n" {
		t.Errorf("5 MB there: got %q", got)
	}
	if got := ask("", "GET", "large"); got != large+"\n" {
		t.Errorf("5 MB back: got %d bytes", len(got))
	}
	// A subscriber waits on its connection while the configuration changes.
	messages := background(t, cli, "-h", "127.0.0.1", "-p", port(through), "SUBSCRIBE", "news")
	eventually(t, "the subscriber is there", func() bool { return strings.Contains(messages.String(), "subscribe") })
	var all sync.WaitGroup
	all.Go(func() {
		var lines strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&lines, "INCR counter\r\nSET k%d v\r\n", i%100)
		}
		if got := command(t, lines.String(), cli, "-h", "127.0.0.1", "-p", port(through), "--pipe"); !strings.Contains(got, "errors: 0, replies: 40000") {
			t.Errorf("40 000 commands in a row: %s", got)
		}
	})
	for i := 1; i <= 5; i++ {
		g.apply(config(i))
	}
	all.Wait()
	if got := ask("", "GET", "counter"); got != "20000\n" {
		t.Errorf("got %q, want 20000", got)
	}
	ask("", "PUBLISH", "news", "hello")
	eventually(t, "the subscriber hears", func() bool { return strings.Contains(messages.String(), "hello") })
	eventually(t, "the access log tells of it", func() bool { return strings.Contains(g.out.String(), `"proto":"tcp"`) })
}

// TestTerminatedTLS holds that programs with TLS of their own reach servers without: Redis,
// and openssl with a protocol by which another proxy of the address is chosen.
func TestTerminatedTLS(t *testing.T) {
	t.Parallel()
	server, cli, openssl := needed(t, "redis-server", "redis-server"), needed(t, "redis-cli", "redis-tools"), needed(t, "openssl", "openssl")
	at, through := free(t), free(t)
	cache := newIdentity(t, "cache.example.com")
	background(t, server, "--port", port(at), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	eventually(t, "redis listens", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	echo := speaksBack(t)
	g := prepare(t)
	g.put("cert.pem", cache.cert)
	g.put("key.pem", cache.key)
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
certificates: {cache: {cert_file: cert.pem, key_file: key.pem}}
tcp_proxies:
  redis: {address: %q, sni: [cache.example.com], tls: {}, servers: [{address: %q}]}
  other: {address: %q, sni: [cache.example.com], alpn: [other], tls: {min_version: "1.3"}, servers: [{address: %q}]}
`, through, at, through, echo))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(cache.cert), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(input string, args ...string) string {
		return command(t, input, cli, append([]string{"-h", "127.0.0.1", "-p", port(through), "--tls", "--sni", "cache.example.com", "--cacert", ca}, args...)...)
	}
	if got := ask("", "PING"); got != "PONG\n" {
		t.Errorf("got %q", got)
	}
	large := strings.Repeat("0123456789", 500_000)
	if got := ask(large, "-x", "SET", "large"); got != "OK\n" {
		t.Errorf("5 MB there: got %q", got)
	}
	if got := ask("", "GET", "large"); got != large+"\n" {
		t.Errorf("5 MB back: got %d bytes", len(got))
	}
	got := command(t, "hello\n", openssl, "s_client", "-connect", through, "-servername", "cache.example.com", "-alpn", "other", "-CAfile", ca, "-verify_return_error", "-ign_eof", "-brief")
	if !strings.Contains(got, "back: hello") || !strings.Contains(got, "TLSv1.3") {
		t.Errorf("openssl got %s", got)
	}
	eventually(t, "the access log has the version of TLS", func() bool { return strings.Contains(g.out.String(), `"tls_version":"TLS 1.3"`) })
}

// speaksBack runs a server that responds to one line and closes the connection.
func speaksBack(t *testing.T) string {
	t.Helper()
	return serveStreams(t, func(c net.Conn) {
		c.SetDeadline(time.Now().Add(patience))
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "back: %s", line)
	})
}

// TestOpenSSLThroughByName holds that a TLS client gets the certificate of the
// server that its name is passed on to, and that of the port for another name.
func TestOpenSSLThroughByName(t *testing.T) {
	t.Parallel()
	openssl := needed(t, "openssl", "openssl")
	inner, outer := newIdentity(t, "db.example.com"), newIdentity(t, "web.example.com")
	at, through := free(t), free(t)
	dir := t.TempDir()
	g := prepare(t)
	g.put("cert.pem", outer.cert)
	g.put("key.pem", outer.key)
	for name, text := range map[string]string{"inner.pem": inner.cert, "inner.key": inner.key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	background(t, openssl, "s_server", "-accept", at, "-cert", filepath.Join(dir, "inner.pem"), "-key", filepath.Join(dir, "inner.key"), "-rev", "-quiet")
	eventually(t, "openssl listens", func() bool {
		c, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {secure: {address: %q, protocol: https}}
certificates: {web: {cert_file: cert.pem, key_file: key.pem}}
proxies: {all: {routes: [{fixed_response: {status: 204}}]}}
tcp_proxies: {db: {port: secure, sni: [db.example.com], servers: [{address: %q}]}}
`, through, at))
	for name, want := range map[string]*identity{"db.example.com": inner, "web.example.com": outer} {
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			got := command(t, "", openssl, "s_client", "-connect", through, "-servername", name, version)
			block, _ := pem.Decode([]byte(got[max(strings.Index(got, "-----BEGIN CERTIFICATE"), 0):]))
			if block == nil || string(block.Bytes) != string(want.tls.Certificate[0]) {
				t.Errorf("%s %s: got another certificate:\n%s", name, version, got)
			}
		}
	}
	c, err := tls.Dial("tcp", through, &tls.Config{RootCAs: inner.pool, ServerName: "db.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintln(c, "abc")
	b := make([]byte, 4)
	if n, err := c.Read(b); string(b[:n]) != "cba\n" {
		t.Errorf("got %q and %v, want the line backwards", b[:n], err)
	}
}

// TestDNS holds that a DNS server works through UDP and TCP proxies on one address.
func TestDNS(t *testing.T) {
	t.Parallel()
	dnsmasq := needed(t, "dnsmasq", "dnsmasq-base")
	at, through := free(t), free(t)
	args := []string{
		"--keep-in-foreground", "--no-resolv", "--no-hosts", "--no-daemon", "--conf-file=/dev/null", "--port=" + port(at),
		"--listen-address=127.0.0.1", "--bind-interfaces", "--pid-file=" + filepath.Join(t.TempDir(), "pid"),
		"--address=/shop.example/192.0.2.80",
	}
	for i := range 100 { // an answer too large for one datagram of 512 bytes
		args = append(args, fmt.Sprintf("--host-record=many.example,192.0.2.%d", i+1))
	}
	background(t, dnsmasq, args...)
	start(t, fmt.Sprintf(`
version: 1
admin: {address: ""}
udp_proxies: {dns: {address: %q, servers: [{address: %q}]}}
tcp_proxies: {dns: {address: %q, servers: [{address: %q}]}}
`, through, at, through, at))
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, through)
	}}
	eventually(t, "a name is found", func() bool {
		addrs, err := resolver.LookupHost(t.Context(), "shop.example")
		return err == nil && len(addrs) == 1 && addrs[0] == "192.0.2.80"
	})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for range 20 {
				addrs, err := resolver.LookupHost(t.Context(), fmt.Sprintf("n%d.shop.example", i))
				if err != nil || len(addrs) != 1 || addrs[0] != "192.0.2.80" {
					t.Errorf("got %v and %v", addrs, err)
					return
				}
			}
		})
	}
	all.Wait()
	if addrs, err := resolver.LookupHost(t.Context(), "many.example"); err != nil || len(addrs) < 50 {
		t.Errorf("a large answer: got %d addresses and %v", len(addrs), err)
	}
}
