package https

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"

	"headgate/internal/testhouse"
)

// webSocket is what a client has of an extended CONNECT.
type webSocket struct {
	io.ReadWriter
	status     int
	header     http.Header
	closeWrite func() error
	reset      func() // the stream, both ways
}

// upgraded is a server that switches to WebSocket and sends back what it gets. It
// tells the heads of its requests.
type upgraded struct {
	url   string
	heads chan string
}

// newUpgraded starts one. accept makes the Sec-WebSocket-Accept of the key's.
func newUpgraded(t *testing.T, accept func(string) string) *upgraded {
	t.Helper()
	u := &upgraded{heads: make(chan string, 100)}
	u.url = "http://" + testhouse.Server(t, func(nc net.Conn) { u.serve(nc, accept) })
	return u
}

func (u *upgraded) serve(nc net.Conn, accept func(string) string) {
	defer nc.Close()
	r := bufio.NewReader(nc)
	rq, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	u.heads <- fmt.Sprintf("%s %s upgrade=%s connection=%s version=%s proto=%s coding=%v", rq.Method, rq.URL.Path, rq.Header.Get("Upgrade"),
		rq.Header.Get("Connection"), rq.Header.Get("Sec-Websocket-Version"), rq.Header.Get("Sec-Websocket-Protocol"), rq.TransferEncoding)
	fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept(rq.Header.Get("Sec-Websocket-Key")))
	io.Copy(nc, r)
	nc.(*net.TCPConn).CloseWrite()
}

// rightAccept is what RFC 6455, section 4.2.2 says.
func rightAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// extended is a way to send an extended CONNECT.
type extended func(t *testing.T, address, path, protocol string) *webSocket

var bothExtended = map[string]extended{"h2": extended2, "h3": extended3}

// extended2 sends one over HTTP/2.
func extended2(t *testing.T, address, path, protocol string) *webSocket {
	t.Helper()
	c, err := tls.Dial("tcp4", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	//lint:ignore SA1019 net/http refuses the field ":protocol"
	cc, err := (&http2.Transport{}).NewClientConn(c)
	if err != nil {
		t.Fatal(err)
	}
	body, out := io.Pipe()
	rq, _ := http.NewRequest("CONNECT", "https://a.example"+path, body)
	rq.Header[":protocol"] = []string{protocol}
	rq.Header.Set("Sec-Websocket-Protocol", "chat")
	rs, err := cc.RoundTrip(rq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rs.Body.Close() })
	return &webSocket{ReadWriter: struct {
		io.Reader
		io.Writer
	}{rs.Body, out}, status: rs.StatusCode, header: rs.Header, closeWrite: out.Close, reset: func() { rs.Body.Close() }}
}

// extended3 sends one over HTTP/3.
func extended3(t *testing.T, address, path, protocol string) *webSocket {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(stop)
	qc, err := quic.DialAddr(ctx, address, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", NextProtos: []string{"h3"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { qc.CloseWithError(0x100, "") })
	s, err := (&http3.Transport{}).NewClientConn(qc).OpenRequestStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rq := &http.Request{Method: "CONNECT", Proto: protocol, Host: "a.example", Header: http.Header{"Sec-Websocket-Protocol": {"chat"}},
		URL: &url.URL{Scheme: "https", Host: "a.example", Path: path}}
	if err := s.SendRequestHeader(rq); err != nil {
		t.Fatal(err)
	}
	rs, err := s.ReadResponse()
	if err != nil {
		t.Fatal(err)
	}
	return &webSocket{ReadWriter: s, status: rs.StatusCode, header: rs.Header, closeWrite: s.Close, reset: func() {
		s.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}}
}

// bothPorts is a configuration with an https and an http3 port on one address.
func bothPorts(address, proxies string) string {
	return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: https, drain_timeout: 300ms}
  quic: {address: %q, protocol: http3, drain_timeout: 300ms}
proxies: {%s}
`, address, address, proxies)
}

func TestAWebSocketOverAStream(t *testing.T) {
	t.Parallel()
	for name, dial := range bothExtended {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, h, address := newUpgraded(t, rightAccept), newHouse(t), testhouse.Address(t)
			route := fmt.Sprintf("all: {routes: [{path: /chat, strip_prefix: false, servers: [{url: %q}]}", u.url)
			h.start(bothPorts(address, route+"]}"))
			ws := dial(t, address, "/chat/room", "websocket")
			if ws.status != 200 || ws.header.Get("Sec-Websocket-Protocol") != "chat" || ws.header.Get("Sec-Websocket-Accept") != "" || ws.header.Get("Upgrade") != "" {
				t.Fatalf("got %d and %v", ws.status, ws.header)
			}
			if got, want := <-u.heads, "GET /chat/room upgrade=websocket connection=upgrade version=13 proto=chat coding=[]"; got != want {
				t.Errorf("the server got %q, want %q", got, want)
			}
			ws.echoes(t, "hello")
			// A change that keeps the route leaves the tunnel alone.
			h.apply(bothPorts(address, route+", {path: /other, fixed_response: {status: 404}}]}"))
			ws.echoes(t, strings.Repeat("0123456789", 100_000))
			// The end of one side reaches the other, which then ends too.
			ws.closeWrite()
			if n, err := ws.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("behind the end: got %d bytes and %v", n, err)
			}
		})
	}
}

// echoes sends text and holds that it comes back.
func (w *webSocket) echoes(t *testing.T, text string) {
	t.Helper()
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { io.WriteString(w, text) })
	b := make([]byte, len(text))
	if _, err := io.ReadFull(w, b); err != nil || string(b) != text {
		t.Fatalf("%d bytes did not come back: %v", len(text), err)
	}
}

func TestAWebSocketEndsWithItsRoute(t *testing.T) {
	t.Parallel()
	for name, dial := range bothExtended {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, h, address := newUpgraded(t, rightAccept), newHouse(t), testhouse.Address(t)
			h.start(bothPorts(address, fmt.Sprintf("all: {routes: [{servers: [{url: %q}]}]}", u.url)))
			ws := dial(t, address, "/", "websocket")
			ws.echoes(t, "hello")
			h.apply(bothPorts(address, "all: {routes: [{path: /other, fixed_response: {status: 404}}]}"))
			ws.echoes(t, "still here")
			end := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, ws)
				end <- err
			}()
			select {
			case <-end:
			case <-time.After(patience):
				t.Error("the tunnel lives on")
			}
		})
	}
}

// What a reset of a TCP connection is to the other side (RFC 8441, section 5; RFC 9220,
// section 3), and the other way round.
func TestAWebSocketPassesAResetOn(t *testing.T) {
	t.Parallel()
	for name, dial := range bothExtended {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, address, servers, end := newHouse(t), testhouse.Address(t), make(chan net.Conn), make(chan struct{})
			url := "http://" + testhouse.Server(t, func(nc net.Conn) {
				if rq, err := http.ReadRequest(bufio.NewReader(nc)); err == nil {
					fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
						rightAccept(rq.Header.Get("Sec-Websocket-Key")))
					servers <- nc
					<-end
				}
			})
			t.Cleanup(func() { close(end) })
			h.start(bothPorts(address, fmt.Sprintf("all: {routes: [{servers: [{url: %q}]}]}", url)))
			open := func() (*webSocket, net.Conn) {
				ws := make(chan *webSocket)
				go func() { ws <- dial(t, address, "/", "websocket") }()
				server := <-servers
				io.WriteString(server, "x")
				server.SetDeadline(time.Now().Add(patience))
				return <-ws, server
			}
			ws, server := open()
			io.ReadFull(ws, make([]byte, 1))
			server.(*net.TCPConn).SetLinger(0)
			server.Close()
			_, err := ws.Read(make([]byte, 1))
			var e2 http2.StreamError
			var e3 *http3.Error
			if !(errors.As(err, &e2) && e2.Code == http2.ErrCodeCancel || errors.As(err, &e3) && e3.ErrorCode == http3.ErrCodeRequestCanceled) {
				t.Errorf("the server was reset, and the client got %v", err)
			}

			ws, server = open()
			io.ReadFull(ws, make([]byte, 1))
			ws.reset()
			if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client was reset, and the server got %v", err)
			}
		})
	}
}

func TestAWebSocketThatCannotBe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, protocol, path string
		accept               func(string) string
		status               int
	}{
		{"another protocol", "connect-udp", "/", rightAccept, 501},
		{"a wrong answer to the key", "websocket", "/", func(string) string { return rightAccept("x") }, 502},
		{"no server", "websocket", "/fixed", rightAccept, 501},
		{"a server without one", "websocket", "/plain", rightAccept, 502},
		{"refused by a filter", "websocket", "/denied", rightAccept, 403},
		{"without a password", "websocket", "/signin", rightAccept, 401},
		{"refused by an auth server", "websocket", "/asked", rightAccept, 403},
	}
	for _, tt := range tests {
		for name, dial := range bothExtended {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				u, h, address := newUpgraded(t, tt.accept), newHouse(t), testhouse.Address(t)
				ordinary, auth := newOrdinary(t), newRefusing(t)
				h.start(bothPorts(address, fmt.Sprintf(`all: {routes: [
  {servers: [{url: %q}]}, {path: /plain, servers: [{url: %q}]}, {path: /fixed, fixed_response: {status: 200}},
  {path: /denied, ip_filter: {deny: [127.0.0.1]}, servers: [{url: %q}]},
  {path: /signin, basic_auth: {users: [{name: a, password_hash: "$apr1$abcd1234$eJC6K4jxyFZ28KBmsBj.X."}]}, servers: [{url: %q}]},
  {path: /asked, forward_auth: {url: %q}, servers: [{url: %q}]}]}`, u.url, ordinary, u.url, u.url, auth, u.url)))
				ws := dial(t, address, tt.path, tt.protocol)
				if ws.status != tt.status {
					t.Errorf("got %d, want %d", ws.status, tt.status)
				}
			})
		}
	}
}

// newRefusing returns the URL of an auth server that refuses whoever opens a
// WebSocket as one is opened over HTTP/1.1.
func newRefusing(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.Header.Get("X-Forwarded-Method") != "GET" || r.Header.Get("X-Forwarded-Uri") != "/asked" || r.Header.Get("Upgrade") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// newOrdinary returns the URL of a server that knows no upgrade.
func newOrdinary(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "plain") })}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}
