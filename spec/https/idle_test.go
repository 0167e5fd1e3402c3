package https

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// serving returns how many connections have a goroutine that serves them.
func serving() int {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("listen.(*conns).run("))
}

// A connection that is idle holds no goroutine. It is served again when a request
// comes, told when its port goes, and ended when its time is over. No other test runs
// at the same time: the goroutines are counted.
func TestIdleConnectionsHoldNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("connections wait in goroutines on other systems")
	}
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	web, secure := testhouse.Address(t), testhouse.Address(t)
	text := func(web, secure, keepAlive string) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: http, limits: {keep_alive_timeout: %s}}
  secure: {address: %q, protocol: https, limits: {keep_alive_timeout: %[2]s}}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "hello"}}]}}
`, web, keepAlive, secure)
	}
	h.start(text(web, secure, "1h"))
	plain := func() *plainClient { return dialPlain(t, web) }
	one, first, second := plain(), dialed{address: secure}.must(t), dialed{address: secure, proto: "h2"}.must(t)
	parked := func() bool { return serving() == 0 }
	for _, c := range []net.Conn{first, second} {
		c.SetDeadline(time.Now().Add(testhouse.Patience))
	}
	for range 2 {
		one.want(t, "hello")
		first.want(t, "a.example", "/", 200, "hello")
		second.want(t, "a.example", "/", 200, "hello")
		testhouse.Eventually(t, "idle connections hold goroutines", parked)
	}
	// A part of a request is waited for, and the rest is served.
	one.write(t, "GET / HTTP/1.1\r\nHo")
	testhouse.Eventually(t, "the part is not noticed", func() bool { return serving() == 1 })
	one.write(t, "st: a.example\r\n\r\n")
	one.answer(t, "hello")
	testhouse.Eventually(t, "idle connections hold goroutines", parked)
	// Their ports move: all of them end.
	h.apply(text(testhouse.Address(t), testhouse.Address(t), "500ms"))
	for name, c := range map[string]net.Conn{"http": one, "https": first} {
		ends(t, name, c)
	}
	if _, err := second.get("a.example", "/"); err == nil {
		t.Error("the connection of HTTP/2 goes on at a port that has moved")
	}
	// Where they stay, they end in their time.
	web, secure = h.Plan().Ports()[1].Address().String(), h.Plan().Ports()[0].Address().String()
	one, first = plain(), dialed{address: secure}.must(t)
	one.want(t, "hello")
	first.want(t, "a.example", "/", 200, "hello")
	ends(t, "http, later", one)
	ends(t, "https, later", first)
}

// ends reads to the end of a connection.
func ends(t *testing.T, name string, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(testhouse.Patience))
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("%s: read %d bytes, %v; want the end", name, n, err)
	}
}

// plainClient is a connection without TLS.
type plainClient struct{ net.Conn }

func dialPlain(t *testing.T, address string) *plainClient {
	t.Helper()
	nc, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(testhouse.Patience))
	return &plainClient{nc}
}

func (c *plainClient) write(t *testing.T, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// answer reads an answer that ends with a text.
func (c *plainClient) answer(t *testing.T, end string) {
	t.Helper()
	var all []byte
	for p := make([]byte, 1024); !strings.HasSuffix(string(all), end); {
		n, err := c.Read(p)
		if all = append(all, p[:n]...); err != nil {
			t.Fatalf("%q, then %v", all, err)
		}
	}
}

func (c *plainClient) want(t *testing.T, end string) {
	t.Helper()
	c.write(t, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	c.answer(t, end)
}
