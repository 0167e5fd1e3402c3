package h1_test

import (
	"strconv"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

func itoa(n int) string { return strconv.Itoa(n) }

// equal compares two values.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestKeepAliveCarriesManyRequests(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	for i := range 50 {
		a := c.get("/" + itoa(i))
		equal(t, "body", a.body, "GET /"+itoa(i)+" ")
		equal(t, "close", a.Close, false)
	}
	equal(t, "connections to the server", o.conns.Load(), 1)
}

func TestServerSeesTheExactHead(t *testing.T) {
	got := make(chan string, 1)
	o := newOrigin(t, func(c *peer, _ int) { got <- c.head(); c.ok("") })
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET /a//b?q=%2F HTTP/1.1\r\nHost: A.test:81\r\nConnection: x-drop, keep-alive\r\nX-Drop: 1\r\nKeep-Alive: 3\r\nX-Keep:  two words \r\n\r\n")
	c.answer("GET")
	ip := "127.0.0.1"
	equal(t, "head", <-got, "GET /a//b?q=%2F HTTP/1.1\r\nHost: A.test:81\r\nX-Keep: two words\r\nforwarded: for="+ip+", host=A.test:81, proto=http\r\n"+
		"x-forwarded-for: "+ip+"\r\nx-forwarded-proto: http\r\nx-forwarded-host: A.test:81\r\nvia: proxy\r\n\r\n")
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	var b strings.Builder
	for i := range 300 {
		body := strings.Repeat("x", i%7*100)
		b.WriteString("POST /" + itoa(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
	}
	go c.try(b.String())
	for i := range 300 {
		a := c.answer("POST")
		equal(t, "body", a.body, "POST /"+itoa(i)+" "+strings.Repeat("x", i%7*100))
	}
}

func TestPipelinedResponseDoesNotWaitForTheNext(t *testing.T) {
	slow := make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			if rq.URL.Path == "/slow" {
				<-slow
			}
			c.ok(rq.URL.Path)
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET /fast HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	equal(t, "first", c.answer("GET").body, "/fast")
	close(slow)
	equal(t, "second", c.answer("GET").body, "/slow")
}

func TestPipelinedResponseDoesNotWaitForTheBodyOfTheNext(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
	equal(t, "first", c.answer("GET").body, "GET /a ")
	c.send("xyz")
	equal(t, "second", c.answer("POST").body, "POST /b xyz")
}

func TestHalfClosedClientGetsItsAnswerAndTheEnd(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	for range 50 {
		c := p.client()
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		c.CloseWrite()
		begun := exchange.Now()
		equal(t, "status", c.answer("GET").StatusCode, 200)
		c.ends()
		if took := exchange.Now() - begun; took > 1e9 {
			t.Fatalf("the connection ended after %d ms", took/1e6)
		}
	}
}

func TestHeadByteByByte(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	c.SetNoDelay(true)
	for _, b := range "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n" {
		c.send(string(b))
	}
	equal(t, "body", c.answer("POST").body, "POST /slow abcd")
	equal(t, "next", c.get("/next").body, "GET /next ")
}
