package h1_test

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/upstream"
)

// What a server may say that is not an answer, and what its client gets.
func TestServerThatDoesNotAnswer(t *testing.T) {
	quick := limits(func(p *exchange.Port) { p.Limits.RequestTimeout = 100 * time.Millisecond })
	for name, s := range map[string]struct {
		play   func(*peer)
		status int
		reason exchange.Reason
	}{
		"garbage":            {func(c *peer) { c.try("\x00\x01\x02garbage\r\n\r\n") }, 502, exchange.UpstreamInvalid},
		"http/0.9":           {func(c *peer) { c.try("<html>hello</html>") }, 502, exchange.UpstreamInvalid},
		"http/2":             {func(c *peer) { c.try("HTTP/2 200\r\n\r\n") }, 502, exchange.UpstreamInvalid},
		"closes at once":     {func(c *peer) {}, 502, exchange.UpstreamReset},
		"resets":             {func(c *peer) { c.reset() }, 502, exchange.UpstreamReset},
		"closes within head": {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Le") }, 502, exchange.UpstreamReset},
		"never answers":      {func(c *peer) { c.gone() }, 504, exchange.UpstreamTimeout},
		"stops within head":  {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nA: "); c.gone() }, 504, exchange.UpstreamTimeout},
		"two lengths":        {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab") }, 502, exchange.UpstreamInvalid},
		"length and coding": {func(c *peer) {
			c.try("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
		}, 502, exchange.UpstreamInvalid},
		"bad name":    {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nA b: 1\r\n\r\n") }, 502, exchange.UpstreamInvalid},
		"101 unasked": {func(c *peer) { c.try("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n") }, 502, exchange.UpstreamInvalid},
		"70 interim": {func(c *peer) {
			c.try(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 70) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}, 502, exchange.UpstreamInvalid},
		"endless line": {func(c *peer) {
			c.try("HTTP/1.1 200 OK\r\nA: ")
			for piece := strings.Repeat("a", 1<<16); c.try(piece) == nil; {
			}
		}, 502, exchange.UpstreamInvalid},
		"1 GB of header": {func(c *peer) {
			c.try("HTTP/1.1 200 OK\r\n")
			for piece := strings.Repeat("A: "+strings.Repeat("a", 1000)+"\r\n", 64); c.try(piece) == nil; {
			}
		}, 502, exchange.UpstreamInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, func(c *peer, _ int) { c.head(); s.play(c) })
			p := newProxy(t, o.addr, quick)
			c := p.client()
			a := c.get("/")
			for a.StatusCode == 103 {
				a = c.answer("GET")
			}
			equal(t, "status", a.StatusCode, s.status)
			equal(t, "close", a.Close, false)
			equal(t, "reason", p.logged().reason, s.reason)
			if strings.Contains(a.body, o.addr) {
				t.Errorf("the answer tells the server's address: %s", a.body)
			}
		})
	}
}

func TestServerThatBreaksOffItsBody(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for name, s := range map[string]struct {
		play func(*peer)
		body int
	}{
		"length, closed":      {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") }, 3},
		"length, reset":       {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"); c.reset() }, -1},
		"long length, closed": {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + long) }, len(long)},
		"chunked, closed":     {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab") }, 2},
		"chunked, no last":    {func(c *peer) { c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n") }, 3},
		"chunked, bad": {func(c *peer) {
			c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
			c.gone()
		}, 3},
	} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
			t.Run(name+" "+proto, func(t *testing.T) {
				o := newOrigin(t, func(c *peer, _ int) { c.head(); s.play(c) })
				p := newProxy(t, o.addr)
				c := p.client()
				c.send("GET / " + proto + "\r\nHost: a\r\n\r\n")
				if s.body < 0 {
					c.gone()
				} else {
					a := c.answer("GET")
					if a.err == nil {
						t.Error("the body looks whole")
					}
					if len(a.body) > s.body {
						t.Errorf("got %d bytes, want %d", len(a.body), s.body)
					}
				}
				e := p.logged()
				if e.reason != exchange.UpstreamReset && e.reason != exchange.UpstreamInvalid && s.body >= 0 {
					t.Errorf("reason %v", e.reason)
				}
				c.Close()
				p.wait()
			})
		}
	}
}

// A body that ends with the connection is whole only if the connection ended
// in an orderly way.
func TestResetDoesNotEndABody(t *testing.T) {
	for _, size := range []int{3, 3000, 300 << 10} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
			read := make(chan struct{})
			o := newOrigin(t, func(c *peer, _ int) {
				c.head()
				c.try("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", size))
				<-read
				c.reset()
			})
			p := newProxy(t, o.addr)
			c := p.client()
			c.send("GET / " + proto + "\r\nHost: a\r\n\r\n")
			c.head()
			c.bytes(size)
			close(read)
			rest, err := readAll(c)
			if proto == "HTTP/1.0" && err == nil || strings.Contains(rest, "0\r\n\r\n") {
				t.Errorf("%s, %d bytes: looks whole: %q, %v", proto, size, rest, err)
			}
			equal(t, "reason", p.logged().reason, exchange.UpstreamReset)
		}
	}
}

func TestStaleConnectionIsReplaced(t *testing.T) {
	o := newOrigin(t, func(c *peer, n int) {
		if rq := c.request(); rq != nil {
			c.ok(itoa(n))
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	for i := range 20 {
		method := []string{"GET", "POST", "PUT"}[i%3]
		c.send(method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
		a := c.answer(method)
		// A POST may meet the close on its way; nothing else may.
		if method != "POST" {
			equal(t, "status", a.StatusCode, 200)
		}
	}
}

// A request that is not idempotent is never sent twice.
func TestPostIsNotRepeated(t *testing.T) {
	got := make(chan string, 10)
	o := newOrigin(t, func(c *peer, n int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			got <- rq.Method + rq.body
			if rq.Method == "POST" {
				return // read it, and close without an answer
			}
			c.ok("")
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.get("/")
	c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
	equal(t, "status", c.answer("POST").StatusCode, 502)
	c.get("/")
	equal(t, "requests", <-got+<-got+<-got, "GETPOSTabGET")
}

// Bytes that a server sends unasked never become the answer to a request.
func TestUnaskedBytesPoisonNothing(t *testing.T) {
	t.Parallel()
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	sent := make(chan struct{}, 100) // one for each request: nobody waits who sends
	for name, send := range map[string]func(*peer){
		"along with the answer": func(c *peer) { c.try("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood" + poison) },
		"behind the answer":     func(c *peer) { c.ok("good"); c.try(poison); sent <- struct{}{} },
		"behind a 204":          func(c *peer) { c.try("HTTP/1.1 204 No Content\r\n\r\n" + poison) },
		"an empty line":         func(c *peer) { c.ok("good"); c.try("\r\n"); sent <- struct{}{} },
		"behind a 304":          func(c *peer) { c.try("HTTP/1.1 304 Not Modified\r\nContent-Length: 45\r\n\r\n" + poison) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, func(c *peer, n int) {
				c.SetNoDelay(true)
				for rq := c.request(); rq != nil; rq = c.request() {
					send(c)
				}
			})
			p := newProxy(t, o.addr)
			c := p.client()
			for range 100 {
				a := c.get("/")
				if a.body != "good" && a.StatusCode == 200 || a.StatusCode >= 500 {
					t.Fatalf("got %d %q", a.StatusCode, a.body)
				}
				if strings.HasPrefix(name, "behind the a") || strings.HasPrefix(name, "an e") {
					<-sent
					<-time.After(20 * time.Millisecond) // longer than a connection is trusted
				}
			}
		})
	}
}

// The answer to HEAD has no body, whatever the server sends.
func TestBodiesThatMustNotBe(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			switch rq.URL.Path {
			case "/head":
				c.try("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
			case "/head-chunked":
				c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			case "/head-none":
				c.try("HTTP/1.1 200 OK\r\n\r\n")
			case "/204":
				c.try("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
			case "/304":
				c.try("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n")
			default:
				c.ok("")
			}
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	for _, rq := range []struct{ method, path, length string }{
		{"HEAD", "/head", "12345"}, {"HEAD", "/head-chunked", ""}, {"HEAD", "/head-none", ""},
		{"GET", "/204", ""}, {"GET", "/304", "99"}, {"HEAD", "/304", "99"}, {"GET", "/", "0"}, {"HEAD", "/", "0"},
	} {
		c.send(rq.method + " " + rq.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		head := c.head()
		line := "Content-Length: " + rq.length + "\r\n"
		if strings.Contains(head, "Content-Length") != (rq.length != "") || rq.length != "" && !strings.Contains(head, line) {
			t.Errorf("%s %s: %q", rq.method, rq.path, head)
		}
		if strings.Contains(head, "close") {
			t.Errorf("%s %s closes: %q", rq.method, rq.path, head)
		}
	}
	equal(t, "connections to the server", o.conns.Load(), 1)
}

func TestOldClients(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			if rq.ProtoMinor != 1 {
				t.Errorf("the server got %s", rq.Proto)
			}
			switch rq.URL.Path {
			case "/chunked":
				c.try("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
			default:
				c.ok("abc")
			}
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	if head := c.head() + c.bytes(3); !strings.Contains(head, "Connection: keep-alive\r\n") {
		t.Errorf("got %q", head)
	}
	c.send("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	if got := c.rest(); !strings.Contains(got, "Connection: close\r\n\r\nabc") || strings.Contains(got, "chunked") || strings.Contains(got, "103") {
		t.Errorf("got %q", got)
	}
	c = p.client()
	c.send("GET / HTTP/1.0\r\n\r\n")
	if got := c.rest(); !strings.Contains(got, "Connection: close\r\n") || !strings.HasSuffix(got, "\r\n\r\nabc") {
		t.Errorf("got %q", got)
	}
}

func TestNoServerListens(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, "127.0.0.1:1", servers(func(s *upstream.Settings) {}))
	_ = o
	a := p.client().get("/")
	equal(t, "status", a.StatusCode, 502)
	equal(t, "reason", p.logged().reason, exchange.UpstreamRefused)
}
