package control

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// speaks runs a server of lines: it says who it is, then sends back what it gets.
func speaks(t *testing.T, name string) string {
	t.Helper()
	return testhouse.Server(t, func(c net.Conn) {
		io.WriteString(c, name+"\n")
		io.Copy(c, c)
	})
}

// streams writes a configuration with TCP proxies, each "name: {…}".
func streams(proxies ...string) string {
	return "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\ntcp_proxies:\n  " + strings.Join(proxies, "\n  ") + "\n"
}

// own is a TCP proxy with an address and servers.
func own(name, address, more string, servers ...string) string {
	var list []string
	for _, s := range servers {
		list = append(list, fmt.Sprintf("{address: %q}", s))
	}
	return fmt.Sprintf("%s: {address: %q, servers: [%s]%s}", name, address, strings.Join(list, ", "), more)
}

// greeted connects and returns the server's first line.
func greeted(t *testing.T, address string) (*client, string) {
	t.Helper()
	c, err := connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	line, _ := c.r.ReadString('\n')
	return c, strings.TrimSuffix(line, "\n")
}

// echoes holds that a connection carries a line there and back.
func echoes(c *client) error {
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return err
	}
	line, err := c.r.ReadString('\n')
	if err == nil && line != "ping\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

func TestATCPProxyCarriesBothWays(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	server := testhouse.Server(t, func(c net.Conn) {
		b, _ := io.ReadAll(c)
		fmt.Fprintf(c, "%x", sha256.Sum256(b))
	})
	h := start(t, streams(own("db", at[0], "", server)))
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("0123456789abcdef", 1<<16)
	io.WriteString(c, data)
	c.Conn.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(c)
	c.Close()
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(data))); string(b) != want || err != nil {
		t.Errorf("got %q and %v, want %q", b, err, want)
	}
	if p, ok := h.port("db", at[0]); !ok || p.Protocol != "tcp" || p.State != "listening" {
		t.Errorf("got %+v", p)
	}
}

func TestServersThatFailAreLeft(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 3)
	a, b := speaks(t, "a"), speaks(t, "b")
	start(t, streams(own("db", at[0], "", a, at[1], b), own("none", at[2], "", at[1])))
	seen := map[string]int{}
	for range 6 {
		c, name := greeted(t, at[0])
		seen[name]++
		c.Close()
	}
	if seen["a"]+seen["b"] != 6 || seen["a"] < 2 || seen["b"] < 2 {
		t.Errorf("got %v, want both and no failure", seen)
	}
	c, err := connect(at[2])
	if err == nil {
		defer c.Close()
		_, err = c.r.ReadByte()
	} // else the reset was quicker than the client
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("without a server: got %v, want a reset", err)
	}
}

func TestATCPProxyRefusesAddresses(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	a := speaks(t, "a")
	h := start(t, streams(own("db", at[0], ", ip_filter: {deny: [127.0.0.1]}", a)))
	if c, name := greeted(t, at[0]); name != "" {
		t.Errorf("got %q", name)
	} else {
		c.Close()
	}
	h.apply(streams(own("db", at[0], ", ip_filter: {allow: [127.0.0.1]}", a)))
	if _, name := greeted(t, at[0]); name != "a" {
		t.Errorf("got %q, want a", name)
	}
	w := httptest.NewRecorder()
	h.c.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`headgate_stream_errors_total{protocol="tcp",proxy="db",reason="address_denied"} 1`,
		`headgate_stream_connections_total{protocol="tcp",proxy="db"} 2`,
		`headgate_stream_connections_open{protocol="tcp",proxy="db"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestTheServerOfATCPProxyHearsOfTheClient(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	server := testhouse.Server(t, func(c net.Conn) { io.Copy(c, c) })
	h := start(t, streams(own("db", at[0], ", proxy_protocol: v1", server)))
	c, line := greeted(t, at[0])
	local := c.LocalAddr().(*net.TCPAddr)
	_, port, _ := net.SplitHostPort(at[0])
	if want := fmt.Sprintf("PROXY TCP4 127.0.0.1 127.0.0.1 %d %s\r", local.Port, port); line != want {
		t.Errorf("got %q, want %q", line, want)
	}
	h.apply(streams(own("db", at[0], ", proxy_protocol: v1, accept_proxy_protocol: {trusted: [127.0.0.1]}", server)))
	passed, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	const header = "PROXY TCP4 192.0.2.9 198.51.100.1 4000 80\r\n"
	io.WriteString(passed, header)
	if line, _ := passed.r.ReadString('\n'); line != header {
		t.Errorf("passed on: got %q, want %q", line, header)
	}
}

func TestConnectionsOutliveEveryChangeButTheEndOfTheirProxy(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 4)
	a, b := speaks(t, "a"), speaks(t, "b")
	other := own("other", at[3], "", a)
	h := start(t, streams(own("db", at[0], "", a), other))
	kept, _ := greeted(t, at[0])
	unchanged, _ := greeted(t, at[3])
	h.apply(streams(own("db", at[0], ", drain_timeout: 5s", b), other))
	h.apply(streams(own("db", at[0], ", drain_timeout: 5s, idle_timeout: 5s, load_balancing: random", b), other))
	if err := echoes(kept); err != nil {
		t.Errorf("after a change of servers: %v", err)
	}
	if _, name := greeted(t, at[0]); name != "b" {
		t.Errorf("a new connection is greeted by %q, want b", name)
	}
	h.apply(streams(own("db", at[0], ", drain_timeout: 300ms", b), other))
	h.apply(streams(own("db", at[1], ", drain_timeout: 300ms", b), other))
	if _, name := greeted(t, at[1]); name != "b" {
		t.Errorf("at the new address: greeted by %q, want b", name)
	}
	if err := echoes(kept); err != nil {
		t.Errorf("while the old address drains: %v", err)
	}
	moved, _ := greeted(t, at[1])
	h.apply(streams(own("renamed", at[1], "", a), other))
	if err := echoes(moved); err != nil {
		t.Errorf("while the removed proxy drains: %v", err)
	}
	for what, c := range map[string]*client{"of the old address": kept, "of the removed proxy": moved} {
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection %s: got %v, want that it is cut", what, err)
		}
	}
	if _, name := greeted(t, at[1]); name != "a" {
		t.Errorf("the proxy that took the address is greeted by %q, want a", name)
	}
	if err := echoes(unchanged); err != nil {
		t.Errorf("a connection of a proxy that nobody touched: %v", err)
	}
}

func TestAnAddressChangesBetweenHTTPAndTCP(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	a := speaks(t, "a")
	h := start(t, document(201, "db "+at[0]+" drain_timeout: 5s"))
	web, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	if got, err := web.get("/"); got != 201 || err != nil {
		t.Fatalf("got %d and %v", got, err)
	}
	h.apply(streams(own("db", at[0], ", drain_timeout: 5s", a)))
	raw, name := greeted(t, at[0])
	if name != "a" {
		t.Errorf("greeted by %q, want a", name)
	}
	if _, err := io.Copy(io.Discard, web); err != nil {
		t.Errorf("the connection that spoke HTTP did not end in order: %v", err)
	}
	h.apply(document(202, "db "+at[0]))
	expectStatus(t, at[0], 202)
	if err := echoes(raw); err != nil {
		t.Errorf("a connection of the proxy that is gone, while it drains: %v", err)
	}
}

// pieces is a connection that sends each byte in a packet of its own.
type pieces struct{ net.Conn }

func (s pieces) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := s.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// subject makes a TLS connection for a name and returns the names in the
// certificate that the client saw, and the first line that came.
func subject(t *testing.T, address, name string, small bool, protocols ...string) (string, string) {
	t.Helper()
	nc, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	if small {
		nc = pieces{nc}
	}
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: protocols})
	if err := c.Handshake(); err != nil {
		return err.Error(), ""
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	b, _ := io.ReadAll(c)
	line, _, _ := strings.Cut(string(b), "\r\n")
	return c.ConnectionState().PeerCertificates[0].Subject.String(), line
}

func TestTLSClientsPassThroughByName(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	inner := httptest.NewTLSServer(nil)
	t.Cleanup(inner.Close)
	server := inner.Listener.Addr().String()
	text := https(document(201, "secure "+at[0]+" drain_timeout: 5s"))
	h := start(t, text)
	through := text + fmt.Sprintf("tcp_proxies:\n  db: {port: secure, sni: [db.example.com, \"*.wild.example.com\"], servers: [{address: %q}], drain_timeout: 200ms}\n", server)
	h.apply(through)
	for name, want := range map[string]string{
		"db.example.com": "HTTP/1.1 404", "DB.example.com": "HTTP/1.1 404", "a.wild.example.com": "HTTP/1.1 404",
		"wild.example.com": "HTTP/1.1 201", "a.b.wild.example.com": "HTTP/1.1 201", "other.example.com": "HTTP/1.1 201", "": "HTTP/1.1 201",
	} {
		for _, small := range []bool{false, true} {
			who, line := subject(t, at[0], name, small)
			if !strings.HasPrefix(line, want) || strings.Contains(who, "Acme Co") != strings.HasSuffix(want, "404") {
				t.Errorf("%q, in small pieces %v: got %q from %q, want %q", name, small, line, who, want)
			}
		}
	}
	var many []string // make a ClientHello of several records
	for i := range 100 {
		many = append(many, fmt.Sprintf("%0250d", i))
	}
	many = append(many, "http/1.1")
	for name, want := range map[string]string{"db.example.com": "HTTP/1.1 404", "other.example.com": "HTTP/1.1 201"} {
		if who, line := subject(t, at[0], name, false, many...); !strings.HasPrefix(line, want) {
			t.Errorf("%q in 25 KB: got %q from %q, want %q", name, line, who, want)
		}
	}
	open, err := tls.Dial("tcp", at[0], &tls.Config{InsecureSkipVerify: true, ServerName: "db.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	open.SetDeadline(time.Now().Add(patience))
	h.apply(text) // the proxy is gone, its port stays
	if _, err := io.WriteString(open, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	if _, err := io.Copy(io.Discard, open); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want that it is cut", err)
	}
	if _, line := subject(t, at[0], "db.example.com", false); !strings.HasPrefix(line, "HTTP/1.1 201") {
		t.Errorf("got %q, want that the port answers again", line)
	}
}

func TestAClientThatSaysNothingOfTLSIsThePorts(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	a := speaks(t, "a")
	start(t, https(document(201, "secure "+at[0]+" drain_timeout: 5s"))+fmt.Sprintf("tcp_proxies:\n  db: {port: secure, sni: [db.example.com], servers: [{address: %q}]}\n", a))
	c, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.get("/"); got != 400 || err != nil {
		t.Errorf("HTTP on the TLS port: got %d and %v, want 400", got, err)
	}
	cut, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	cut.Write([]byte{22, 3, 1, 2, 0, 1, 0}) // the beginning of a ClientHello
	cut.Conn.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(cut); len(b) > 0 && b[0] != 21 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("half a ClientHello: got %q and %v, want an alert or the end", b, err)
	}
}
