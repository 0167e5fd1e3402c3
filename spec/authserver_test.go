package spec

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"headgate/internal/testhouse"
)

// answerWith reads one request head and answers with a text.
func answerWith(text string) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		buf := make([]byte, 8<<10)
		if _, err := c.Read(buf); err == nil {
			io.WriteString(c, text)
		}
	}
}

const behindAuth = `version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
proxies:
  p:
    forward_auth: {url: "http://%s/auth", timeout: 300ms, response_headers: [Remote-User]}
    routes:
      - {fixed_response: {status: 200, body: in}}
`

// An auth server that misbehaves lets nobody in and costs no more than its time.
func TestAuthServersThatMisbehave(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  func(net.Conn)
		status int
		most   int // bytes of body
	}{
		{"closes", func(c net.Conn) { c.Close() }, 502, 1 << 10},
		{"is silent", func(c net.Conn) { io.Copy(io.Discard, c) }, 504, 1 << 10},
		{"speaks no HTTP", answerWith("SSH-2.0-OpenSSH_9.9\r\n"), 502, 1 << 10},
		{"half a head", answerWith("HTTP/1.1 200 OK\r\nRemote-User: admin"), 502, 1 << 10},
		{"switches protocols", answerWith("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 502, 1 << 10},
		{"two lengths", answerWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n"), 502, 1 << 10},
		{"redirects to itself", answerWith("HTTP/1.1 302 Found\r\nLocation: /auth\r\nContent-Length: 0\r\n\r\n"), 302, 0},
		{"a long head", answerWith("HTTP/1.1 200 OK\r\nRemote-User: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), 502, 1 << 10},
		{"a gigabyte", func(c net.Conn) {
			defer c.Close()
			c.Read(make([]byte, 8<<10))
			fmt.Fprintf(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n", 1<<30)
			for block := make([]byte, 64<<10); ; {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
		}, 403, 64 << 10},
		{"a body that stops", answerWith("HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nabc"), 502, 1 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := testhouse.Server(t, c.serve)
			s := newStage(t, fmt.Sprintf(behindAuth, addr), transports[0])
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			defer client.CloseIdleConnections()
			answer, err := client.Get("http://" + s.addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != c.status || len(body) > c.most {
				t.Errorf("status %d, %d bytes, %v; want %d and at most %d bytes", answer.StatusCode, len(body), err, c.status, c.most)
			}
		})
	}
}

// An auth server that is the very route that asks it ends in an error and not in a
// storm.
func TestAuthServerIsTheProxyItself(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns atomic.Int64
	s := newStageOn(t, counting{l, &conns}, fmt.Sprintf(behindAuth, l.Addr()), transports[0])
	answer, err := http.Get("http://" + s.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 508 || !strings.Contains(string(body), "loop") || conns.Load() > 4 {
		t.Errorf("status %d after %d connections, want 508 after a few: %s", answer.StatusCode, conns.Load(), body)
	}
}

// counting counts the connections that a listener takes.
type counting struct {
	net.Listener
	n *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	nc, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return nc, err
}

// An auth server that failed many times in a row is asked again at once when it is
// back: there is no other one to ask meanwhile.
func TestAuthServerThatComesBack(t *testing.T) {
	var n atomic.Int64
	addr := testhouse.Server(t, func(c net.Conn) {
		if n.Add(1) > 12 {
			answerWith("HTTP/1.1 200 OK\r\nRemote-User: ada\r\nContent-Length: 0\r\n\r\n")(c)
			return
		}
		c.Close()
	})
	s := newStage(t, fmt.Sprintf(behindAuth, addr), transports[0])
	for i := range 20 {
		answer, err := http.Get("http://" + s.addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if want := map[bool]int{true: 502, false: 200}[n.Load() <= 12]; answer.StatusCode != want {
			t.Fatalf("request %d, after %d connections: status %d, want %d", i, n.Load(), answer.StatusCode, want)
		}
	}
	if n.Load() <= 12 {
		t.Errorf("the auth server was asked %d times", n.Load())
	}
}
