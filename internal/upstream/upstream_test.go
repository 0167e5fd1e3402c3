package upstream

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// equal compares two values.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// newServers returns the source for targets, whose pools end with the test.
func newServers(t *testing.T, settings Settings, targets ...Target) *Servers {
	t.Helper()
	return New(targets, settings, Policy{}, newEnv(t))
}

// newServersWith is newServers for a route with a policy.
func newServersWith(t *testing.T, policy Policy, targets ...Target) *Servers {
	t.Helper()
	return New(targets, settings, policy, newEnv(t))
}

// newEnv returns a house that keeps nothing longer than the test.
func newEnv(t *testing.T) exchange.Env {
	env := exchange.Env{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
		k := open()
		t.Cleanup(k.Retire)
		return k
	}}
	return env
}

// serve answers every request on every connection with text, until the test
// ends. It returns the address.
func serve(t *testing.T, text string) string {
	t.Helper()
	return testhouse.Server(t, func(c net.Conn) {
		b := make([]byte, 8192)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: " + string('0'+rune(len(text))) + "\r\n\r\n" + text))
		}
	})
}

func target(address string, weight int) Target {
	return Target{URL: "http://" + address, Address: address, Authority: address, Weight: weight}
}

var settings = Settings{IdleTimeout: time.Minute, IdleConnections: 2, BodyIdle: time.Minute}

func TestHeadIsExact(t *testing.T) {
	for _, c := range []struct {
		base  string
		host  HostField
		on    exchangetest.Option
		want  string
		query string
	}{
		{base: "", on: exchangetest.Head("GET", "/a/b?c=d", "X: y"), want: "GET /a/b?c=d HTTP/1.1\r\nHost: example.com\r\nX: y\r\n\r\n"},
		{base: "/b/", on: exchangetest.Head("GET", "/a"), want: "GET /b/a HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{base: "/b", on: func(ex *exchange.Exchange) { ex.Request.Target = "" }, want: "GET /b HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{base: "/b/", on: func(ex *exchange.Exchange) { ex.Request.Target, ex.Request.Query = "", "?q" }, want: "GET /b/?q HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{base: "/b/", on: exchangetest.Head("OPTIONS", "*"), want: "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{host: HostField{Upstream: true}, on: exchangetest.Host("x"), want: "GET / HTTP/1.1\r\nHost: up:1\r\n\r\n"},
		{host: HostField{Fixed: "f"}, on: exchangetest.Host("x"), want: "GET / HTTP/1.1\r\nHost: f\r\n\r\n"},
		{on: exchangetest.Host(""), want: "GET / HTTP/1.1\r\nHost: up:1\r\n\r\n"},
		{on: exchangetest.Head("POST", "/"), want: "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n"},
		{on: exchangetest.Content("abc"), want: "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\n"},
		{on: exchangetest.Chunks("abc"), want: "GET / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{on: func(ex *exchange.Exchange) { ex.Request.Upgrade = "websocket" }, want: "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"},
		{on: func(ex *exchange.Exchange) { ex.Request.AcceptsTrailers = true }, want: "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: TE\r\nTE: trailers\r\n\r\n"},
		{on: exchangetest.Head("GET", "/", "Host: evil", "Content-Length: 9", "Expect: x"), want: "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"},
	} {
		s := newServers(t, settings, Target{Address: "127.0.0.1:1", Authority: "up:1", Base: c.base, Weight: 1})
		got := AppendHead(nil, exchangetest.New(t, c.on), s.List()[0], c.host)
		equal(t, "head", string(got), c.want)
	}
}

func TestForwardedFields(t *testing.T) {
	six := exchangetest.From("2001:db8::1")
	for _, c := range []struct {
		style Style
		via   bool
		on    []exchangetest.Option
		want  string
	}{
		{Compat, false, nil, "forwarded: for=192.0.2.1, host=example.com, proto=http|x-forwarded-for: 192.0.2.1|x-forwarded-proto: http|x-forwarded-host: example.com|via: proxy"},
		{Compat, false, []exchangetest.Option{six, exchangetest.Secure(), exchangetest.Host("[::1]:8")}, `forwarded: for="[2001:db8::1]", host="[::1]:8", proto=https|x-forwarded-for: 2001:db8::1|x-forwarded-proto: https|x-forwarded-host: [::1]:8|via: proxy`},
		{RFC7239, true, []exchangetest.Option{six, exchangetest.Host("a.b:8")}, `forwarded: for="[2001:db8::1]";host="a.b:8";proto=http|x-forwarded-for: 2001:db8::1|x-forwarded-proto: http|x-forwarded-host: a.b:8|via: 1.1 headgate`},
		{Off, false, nil, "via: proxy"},
		{Off, false, []exchangetest.Option{exchangetest.Head("GET", "/", "Via: 1.0 a", "Via: 1.1 b")}, "Via: 1.0 a, 1.1 b, proxy"},
		{Off, false, []exchangetest.Option{func(ex *exchange.Exchange) { ex.ClientIP = ex.Conn.Local.Addr() }}, "via: proxy"},
	} {
		ex := exchangetest.New(t, c.on...)
		Forward(c.style, c.via).Request(ex)
		var got []string
		for _, f := range ex.Request.Header.All() {
			got = append(got, f.Name+": "+f.Value)
		}
		equal(t, "fields", strings.Join(got, "|"), c.want)
	}
	// A trusted peer's word on the client stands in place of the peer.
	ex := exchangetest.New(t)
	ex.ClientIP = ex.Conn.Local.Addr()
	Forward(Compat, false).Request(ex)
	if v, _ := ex.Request.Header.Lookup("X-Forwarded-For"); v != "192.0.2.254" {
		t.Errorf("x-forwarded-for %q", v)
	}
}

func TestServerThatCannotBeReachedIsLeftForAnother(t *testing.T) {
	live := serve(t, "live")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := ln.Addr().String()
	ln.Close()
	s := newServers(t, settings, target(dead, 1), target(live, 1), target(dead, 1))
	for range 6 {
		ex := exchangetest.New(t)
		f := exchangetest.Run(t, ex, s)
		equal(t, "body", f.Body, "live")
		equal(t, "server", ex.Server, "http://"+live)
	}
	for _, c := range []struct {
		servers *Servers
		reason  exchange.Reason
	}{
		{newServers(t, settings, target(dead, 1), target(dead, 2)), exchange.UpstreamRefused},
		{newServers(t, settings, target("name.invalid:80", 1)), exchange.UpstreamDNS},
		{newServers(t, settings, target(live, 0)), exchange.NoHealthyServer},
	} {
		ex := exchangetest.New(t)
		ex.Limits.ConnectTimeout = 10 * time.Second
		exchangetest.Run(t, ex, c.servers)
		equal(t, "reason", ex.Reason, c.reason)
	}
}

func TestPoolKeepsAsManyAsAllowed(t *testing.T) {
	address := serve(t, "x")
	s := newServers(t, settings, target(address, 1))
	pool := s.List()[0].pool
	var open []*exchange.Exchange
	for range 5 {
		ex := exchangetest.New(t)
		if answer := s.Respond(ex); answer != nil {
			t.Fatal(answer.Cause)
		}
		b := make([]byte, 1)
		ex.Response.Body.Read(b)
		open = append(open, ex)
	}
	equal(t, "kept while in use", pool.Idle(), 0)
	for _, ex := range open {
		ex.Response.Body.Close()
		ex.Response.Body.Close() // once more does nothing
	}
	equal(t, "kept", pool.Idle(), settings.IdleConnections)
	pool.Retire()
	equal(t, "kept after it was retired", pool.Idle(), 0)
	ex := exchangetest.New(t)
	equal(t, "body", exchangetest.Run(t, ex, s).Body, "x") // still works
	equal(t, "kept after it was retired", pool.Idle(), 0)
}

func TestPoolClosesWhatRestsTooLong(t *testing.T) {
	short := settings
	short.IdleTimeout = 20 * time.Millisecond
	s := newServers(t, short, target(serve(t, "x"), 1))
	exchangetest.Run(t, exchangetest.New(t), s)
	pool := s.List()[0].pool
	for begun := time.Now(); pool.Idle() > 0; {
		if time.Since(begun) > time.Minute {
			t.Fatal("an idle connection is kept")
		}
		<-time.After(time.Millisecond)
	}
}

// A body that was not read to its end takes its connection with it.
func TestUnreadBodyClosesTheConnection(t *testing.T) {
	s := newServers(t, settings, target(serve(t, "x"), 1))
	ex := exchangetest.New(t)
	if answer := s.Respond(ex); answer != nil {
		t.Fatal(answer.Cause)
	}
	ex.Response.Body.Close()
	equal(t, "kept", s.List()[0].pool.Idle(), 0)
}
