package h1_test

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/upstream"
)

// post is a request with a body that is sent apart.
func post(path string, n int, fields ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: a.test\r\n" + strings.Join(append(fields, ""), "\r\n") + "Content-Length: " + itoa(n) + "\r\n\r\n"
}

// A body that comes behind its head must not take the memory of the head: rules
// for the response and the log still look at it.
func TestHeadOutlivesItsBody(t *testing.T) {
	o := newOrigin(t, echo)
	var host, accept string
	p := newProxy(t, o.addr, filter(exchange.Filter{Response: func(ex *exchange.Exchange) {
		host = strings.Clone(ex.Request.Host)
		v, _ := ex.Request.Header.Lookup("X-Mark")
		accept = strings.Clone(v)
	}}))
	for _, pieces := range [][]string{
		{post("/the/path", 4000, "X-Mark: kept"), strings.Repeat("b", 4000)},
		{post("/the/path", 4000, "X-Mark: kept"), strings.Repeat("b", 1), strings.Repeat("b", 3999)},
		{post("/the/path", 40000, "X-Mark: kept", "X-Long: "+strings.Repeat("l", 3900)), strings.Repeat("b", 40000)},
		{"POST /the/path HTTP/1.1\r\nHost: a.test\r\nX-Mark: kept\r\nTransfer-Encoding: chunked\r\n\r\n", "5;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nbbbbb\r\n", "0\r\nX-Trailer: 1\r\n\r\n"},
	} {
		c := p.client()
		c.SetNoDelay(true)
		for i, s := range pieces {
			c.send(s)
			if i == 0 {
				c.send("") // the head goes alone
			}
		}
		if a := c.answer("POST"); !strings.HasPrefix(a.body, "POST /the/path bbbbb") {
			t.Errorf("answer %.60q", a.body)
		}
		e := p.logged()
		equal(t, "path in the log", e.path, "/the/path")
		equal(t, "host in the log", e.host, "a.test")
		equal(t, "host for response rules", host, "a.test")
		equal(t, "field for response rules", accept, "kept")
		c.Close()
	}
}

// The head of a response is looked at by nobody but the front; a body that
// comes behind it must not change what is sent.
func TestResponseHeadOutlivesItsBody(t *testing.T) {
	gone := make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			c.send("HTTP/1.1 200 OK\r\nX-Mark: kept\r\nTransfer-Encoding: chunked\r\n\r\n")
			<-gone
			c.send("3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n")
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
	if head := c.head(); !strings.Contains(head, "X-Mark: kept\r\n") {
		t.Errorf("head %q", head)
	}
	close(gone)
	equal(t, "body", c.bytes(len("3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n")), "3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n")
}

func TestContinueIsAskedForAndGiven(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*peer){
		"server asks": func(c *peer) { c.send("HTTP/1.1 100 Continue\r\n\r\n") },
		"server asks twice and hints": func(c *peer) {
			c.send("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
		},
		"server says nothing": func(*peer) {},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, func(c *peer, _ int) {
				for range 2 {
					if head := c.head(); !strings.Contains(head, "Expect: 100-continue\r\n") {
						t.Errorf("head %q", head)
					}
					play(c)
					equal(t, "body", c.bytes(5), "hello")
					c.ok("done")
				}
			})
			p := newProxy(t, o.addr)
			c := p.client()
			for range 2 {
				c.send(post("/", 5, "Expect: 100-continue"))
				for head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 100 "); head = c.head() {
					if !strings.HasPrefix(head, "HTTP/1.1 103 ") {
						t.Fatalf("head %q", head)
					}
				}
				c.send("hello")
				for {
					a := c.answer("POST")
					if a.StatusCode >= 200 || a.StatusCode == 0 {
						equal(t, "answer", a.body, "done")
						break
					}
				}
			}
		})
	}
}

func TestContinueRefusedClosesTheConnection(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.try("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
		c.gone()
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(post("/", 5, "Expect: 100-continue"))
	a := c.answer("POST")
	equal(t, "status", a.StatusCode, 417)
	equal(t, "close", a.Close, true)
	c.ends()
}

func TestContinueWithTheBodyAtOnce(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.send("HTTP/1.1 100 Continue\r\n\r\n")
		equal(t, "body", c.bytes(5), "hello")
		c.ok("done")
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(post("/", 5, "Expect: 100-continue") + "hello")
	for {
		a := c.answer("POST")
		if a.StatusCode != 100 {
			equal(t, "answer", a.body, "done")
			break
		}
	}
}

// A client need not wait to be asked for its body (RFC 9110, section 10.1.1), and
// then a server that never asks gets it at once.
func TestContinueUnasked(t *testing.T) {
	t.Parallel()
	head := post("/", 5, "Expect: 100-continue")
	for name, send := range map[string]func(c *peer, asked <-chan struct{}){
		"with the head": func(c *peer, _ <-chan struct{}) { c.send(head + "hello") },
		"behind it":     func(c *peer, asked <-chan struct{}) { c.send(head); <-asked; c.send("hello") },
		"in parts":      func(c *peer, asked <-chan struct{}) { c.send(head + "he"); <-asked; c.send("llo") },
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			o := newOrigin(t, func(c *peer, _ int) {
				c.head()
				asked <- struct{}{}
				equal(t, "body", c.bytes(5), "hello")
				c.ok("done")
			})
			p := newProxy(t, o.addr, servers(func(s *upstream.Settings) { s.ContinueWait = time.Hour }))
			c := p.client()
			send(c, asked)
			for {
				if a := c.answer("POST"); a.StatusCode != 100 {
					equal(t, "answer", a.body, "done")
					return
				}
			}
		})
	}
}

// A server may answer before it has read the body (RFC 9112, section 9.3): the
// answer is passed on at once, and the connection ends behind it.
func TestEarlyResponseWhileTheBodyComes(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.try("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		c.gone()
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(post("/", 1<<30) + strings.Repeat("x", 100))
	a := c.answer("POST")
	equal(t, "status", a.StatusCode, 413)
	equal(t, "body", a.body, "big")
	equal(t, "close", a.Close, true)
	c.ends()
}

// The same with a server that closes at once while the client keeps sending:
// the client gets the answer and no reset before it.
func TestEarlyResponseThenCloseWhileTheClientSends(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.try("HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\nConnection: close\r\n\r\nwho")
		c.CloseWrite()
		c.gone()
	})
	p := newProxy(t, o.addr)
	for range 10 {
		c := p.client()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			c.try(post("/", 1<<30))
			for piece := strings.Repeat("x", 1<<14); c.try(piece) == nil; {
			}
		}()
		a := c.answer("POST")
		equal(t, "status", a.StatusCode, 401)
		equal(t, "body", a.body, "who")
		c.Close()
		<-sent
	}
}

// A body that is stuck at a server which does not read is given up when the
// answer is there; the client still reads it in full.
func TestEarlyResponseWhileTheServerDoesNotRead(t *testing.T) {
	full, answered := make(chan struct{}), make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		c.SetReadBuffer(4 << 10)
		c.head()
		<-full
		c.try("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
		<-answered
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(post("/", 1<<30))
	for piece := strings.Repeat("x", 1<<20); ; {
		c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		if c.try(piece) != nil {
			break // no more goes in
		}
	}
	close(full)
	a := c.answer("POST")
	equal(t, "status", a.StatusCode, 503)
	equal(t, "body", a.body, "busy")
	close(answered)
	c.ends()
}

func TestBodiesOfEveryFraming(t *testing.T) {
	body := strings.Repeat("0123456789", 20000)
	var chunks strings.Builder
	for i := 0; i < len(body); i += 7000 {
		part := body[i:min(i+7000, len(body))]
		chunks.WriteString(hex(len(part)) + ";x=\"y\"\r\n" + part + "\r\n")
	}
	chunks.WriteString("0\r\nETag: \"e\"\r\nX-Sum: 1\r\nContent-Length: 3\r\n\r\n")
	o := newOrigin(t, func(c *peer, n int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			if rq.body != body {
				t.Errorf("%s: the server got %d bytes, %v", rq.URL.Path, len(rq.body), rq.err)
			}
			if rq.ContentLength < 0 && rq.Trailer.Get("X-Sum") != "1" {
				t.Errorf("trailers %v", rq.Trailer)
			}
			switch rq.URL.Path {
			case "/length":
				c.ok(body)
			case "/chunked":
				c.try("HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks.String())
			case "/close":
				c.try("HTTP/1.1 200 OK\r\n\r\n" + body)
				return
			}
		}
	})
	p := newProxy(t, o.addr)
	for _, path := range []string{"/length", "/chunked", "/close"} {
		for _, rq := range []string{
			post(path, len(body)) + body,
			"POST " + path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks.String(),
			"POST " + path + " HTTP/1.0\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body,
		} {
			c := p.client()
			go c.try(rq)
			a := c.answer("POST")
			if a.body != body || a.err != nil {
				t.Errorf("%s %.40q: got %d bytes, %v", path, rq, len(a.body), a.err)
			}
			if path == "/chunked" && a.ContentLength < 0 && len(a.TransferEncoding) > 0 && a.Trailer.Get("X-Sum") != "1" {
				t.Errorf("%s: trailers %v", path, a.Trailer)
			}
			equal(t, "received", p.logged().received, int64(len(body)))
			c.Close()
		}
	}
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	s := ""
	for ; n > 0; n >>= 4 {
		s = string(digits[n&15]) + s
	}
	return s
}

func TestBadBodyOfAClient(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		status int
		reason exchange.Reason
	}{
		"chunk size":       {"zz\r\n", 400, exchange.BadRequest},
		"chunk end":        {"1\r\nab\r\n0\r\n\r\n", 400, exchange.BadRequest},
		"bare LF":          {"1\na\n0\n\n", 400, exchange.BadRequest},
		"chunk overflow":   {"fffffffffffffffff\r\n", 400, exchange.BadRequest},
		"extension length": {"1;" + strings.Repeat("a", 300) + "\r\n", 400, exchange.BadRequest},
		"trailer size":     {"0\r\nA: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", 431, exchange.HeadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, func(c *peer, _ int) { c.gone() })
			p := newProxy(t, o.addr)
			cl := p.client()
			cl.try("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + c.text)
			a := cl.answer("POST")
			equal(t, "status", a.StatusCode, c.status)
			equal(t, "close", a.Close, true)
			equal(t, "reason", p.logged().reason, c.reason)
		})
	}
}

func TestClientVanishesWithinItsBody(t *testing.T) {
	for _, how := range []func(*peer){(*peer).reset, func(c *peer) { c.Close() }, func(c *peer) { c.CloseWrite() }} {
		got := make(chan string, 1)
		o := newOrigin(t, func(c *peer, _ int) { c.head(); got <- c.gone() })
		p := newProxy(t, o.addr)
		c := p.client()
		c.send(post("/", 1000), "xyz")
		how(c)
		e := p.logged()
		equal(t, "reason", e.reason, exchange.ClientClosed)
		equal(t, "status", e.status, 499)
		if s := <-got; !strings.HasPrefix("xyz", s) {
			t.Errorf("the server got %q", s)
		}
		p.wait()
	}
}

// 499 stands in the log only.
func TestClientClosedIsNeverSent(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) { c.gone() })
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(post("/", 1000), "xyz")
	c.CloseWrite()
	equal(t, "answer", c.gone(), "")
}

func TestPausingClientIsCut(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) { c.gone() })
	p := newProxy(t, o.addr, limits(func(p *exchange.Port) { p.Limits.BodyIdle = 50 * time.Millisecond }))
	c := p.client()
	c.send(post("/", 1000), "xyz")
	a := c.answer("POST")
	equal(t, "status", a.StatusCode, 408)
	equal(t, "reason", p.logged().reason, exchange.RequestTimeout)
	c.ends()
}

func TestPausingServerIsCut(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.try("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		c.gone()
	})
	p := newProxy(t, o.addr, servers(func(s *upstream.Settings) { s.BodyIdle = 50 * time.Millisecond }))
	c := p.client()
	a := c.get("/")
	equal(t, "body", a.body, "abc")
	if a.err == nil {
		t.Error("the body looks whole")
	}
	equal(t, "reason", p.logged().reason, exchange.UpstreamTimeout)
}

// givesUp is a source that answers without a look at the request's body.
type givesUp struct{}

func (givesUp) Describe() string { return "test" }
func (givesUp) Respond(ex *exchange.Exchange) *exchange.Answer {
	if ex.Request.Body != nil {
		ex.Request.Body.Close()
	}
	ex.Response.Status = 204
	return nil
}

// A body that came along with its head and is given up does not cost the connection, of
// which the client was not told that it ends.
func TestABodyAtHandThatIsGivenUpIsSkipped(t *testing.T) {
	p := newProxy(t, "", func(p *proxy, _ *upstream.Settings) { p.pipe.Source = givesUp{} })
	c := p.client()
	c.send(post("/", 5) + "hello" + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for i := range 2 {
		if rs := c.answer("GET"); rs.StatusCode != 204 || rs.Close {
			t.Errorf("answer %d: got %d, closing %v", i, rs.StatusCode, rs.Close)
		}
	}
}
