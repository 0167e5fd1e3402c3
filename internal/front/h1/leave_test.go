package h1_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// A client that leaves while the server thinks is noticed before the answer:
// the server's connection ends and the log says 499.
func TestClientLeavesWhileTheServerThinks(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*peer){"closes": func(c *peer) { c.Close() }, "resets": (*peer).reset} {
		for _, rq := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", post("/", 100000) + strings.Repeat("x", 100000)} {
			t.Run(name+" "+rq[:4], func(t *testing.T) {
				asked := make(chan struct{})
				o := newOrigin(t, func(c *peer, _ int) {
					c.request()
					close(asked)
					c.gone() // answers never
				})
				p := newProxy(t, o.addr, limits(func(p *exchange.Port) { p.Limits.RequestTimeout = 0 }))
				c := p.client()
				c.send(rq)
				<-asked
				leave(c)
				e := p.logged()
				equal(t, "reason", e.reason, exchange.ClientClosed)
				equal(t, "status", e.status, 499)
				p.wait()
			})
		}
	}
}

// A client that has only closed its side still gets an answer that takes a
// moment.
func TestHalfClosedClientIsGivenAMoment(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.request()
		<-time.After(700 * time.Millisecond) // longer than the first look
		c.ok("late")
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	c.CloseWrite()
	equal(t, "body", c.answer("GET").body, "late")
	c.ends()
}

func TestClientLeavesBetweenTheEventsOfAStream(t *testing.T) {
	t.Parallel()
	for _, framing := range []string{"Transfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n", "\r\nevent"} {
		o := newOrigin(t, func(c *peer, _ int) {
			c.request()
			c.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing)
			c.gone()
		})
		p := newProxy(t, o.addr)
		c := p.client()
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if head := c.head(); !strings.Contains(head, "event-stream") {
			t.Errorf("head %q", head)
		}
		equal(t, "event", c.bytes(10), "5\r\nevent\r\n")
		c.Close()
		e := p.logged()
		equal(t, "reason", e.reason, exchange.ClientClosed)
		equal(t, "status", e.status, 200)
		p.wait()
	}
}

// The connection is closed from outside, as when the drain time is over, while
// an exchange is served inside the connection's wait.
func TestCloseDoesNotWaitForTheExchange(t *testing.T) {
	asked := make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		c.request()
		close(asked)
		c.gone()
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	begun := time.Now()
	p.conn().Close()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	equal(t, "reason", p.logged().reason, exchange.ClientClosed)
	p.wait()
}

func TestDrainEndsIdleConnections(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	c.get("/")
	p.conn().Drain()
	// A request that was on its way is still served, and the last.
	a := c.get("/late")
	equal(t, "body", a.body, "GET /late ")
	equal(t, "close", a.Close, true)
	c.ends()

	c = p.client()
	c.get("/")
	p.conn().Drain()
	c.ends()
	p.wait()
}

func TestDrainLetsTheExchangeEnd(t *testing.T) {
	t.Parallel()
	asked, drained := make(chan struct{}), make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		for rq := c.request(); rq != nil; rq = c.request() {
			asked <- struct{}{}
			<-drained
			c.ok(rq.body)
		}
	})
	p := newProxy(t, o.addr)
	for _, rq := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", post("/", 3) + "abc"} {
		c := p.client()
		c.send(rq)
		<-asked
		p.conn().Drain()
		drained <- struct{}{}
		a := c.answer("GET")
		equal(t, "status", a.StatusCode, 200)
		equal(t, "close", a.Close, true)
		c.ends()
	}

	c := p.client() // in the middle of a body
	c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	drained <- struct{}{}
	c.answer("GET")
	c.send(post("/", 100000), strings.Repeat("a", 50000))
	p.conn().Drain()
	c.send(strings.Repeat("a", 50000))
	<-asked
	drained <- struct{}{}
	equal(t, "length", len(c.answer("POST").body), 100000)
	c.ends()
	p.wait()
}

func TestSilentClientsAreCut(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr, limits(func(p *exchange.Port) { p.HeadTimeout, p.KeepAlive = 100*time.Millisecond, 50*time.Millisecond }))
	c := p.client()
	c.ends() // said nothing at all

	c = p.client()
	c.send("GET / HTTP/1.1\r\nHo")
	equal(t, "status", c.answer("GET").StatusCode, 408)
	c.ends()
	equal(t, "reason", p.logged().reason, exchange.RequestTimeout)

	c = p.client()
	c.get("/")
	c.ends() // kept alive for long enough

	c = p.client()
	c.SetNoDelay(true)
	c.send("GET / HTTP/1.1\r\nA: ")
	for c.try("a") == nil { // a byte now and then does not help
		select {
		case e := <-p.entry:
			if e.reason == exchange.RequestTimeout {
				c.reset()
				p.wait()
				return
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSlowReaderIsCutOnlyWithoutProgress(t *testing.T) {
	t.Parallel()
	const size = 32 << 20
	o := newOrigin(t, func(c *peer, _ int) {
		rq := c.request()
		c.try("HTTP/1.1 200 OK\r\n")
		switch rq.URL.Path {
		case "/length":
			c.try("Content-Length: " + itoa(size) + "\r\n\r\n" + strings.Repeat("x", size))
		case "/chunked":
			c.try("Transfer-Encoding: chunked\r\n\r\n" + hex(size) + "\r\n" + strings.Repeat("x", size) + "\r\n0\r\n\r\n")
		}
	})
	p := newProxy(t, o.addr, limits(func(p *exchange.Port) { p.WriteIdle = time.Second }))
	for _, path := range []string{"/length", "/chunked"} {
		c := p.client()
		c.SetReadBuffer(256 << 10)
		c.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		c.head()
		// Slower than the whole wait allows, in steps that each beat it.
		for range 8 {
			c.bytes(512 << 10)
			<-time.After(200 * time.Millisecond)
		}
		select {
		case e := <-p.entry:
			t.Errorf("%s: cut although it reads: %v %s", path, e.reason, e.cause)
		default:
		}
		equal(t, "reason", p.logged().reason, exchange.ClientTimeout) // reads no more
		c.reset()
	}
	p.wait()
}

func TestClientLeavesWithinTheResponse(t *testing.T) {
	for _, framing := range []string{"Content-Length: 1000000000\r\n\r\n", "\r\n"} {
		o := newOrigin(t, func(c *peer, _ int) {
			c.request()
			c.try("HTTP/1.1 200 OK\r\n" + framing)
			for piece := strings.Repeat("x", 1<<16); c.try(piece) == nil; {
			}
		})
		p := newProxy(t, o.addr)
		c := p.client()
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		c.bytes(100000)
		c.Close()
		e := p.logged()
		equal(t, "reason", e.reason, exchange.ClientClosed)
		equal(t, "status", e.status, 200)
		p.wait()
	}
}

// A response whose end would be told by that of its connection is reset when it is cut.
func TestAResponseThatIsCutIsReset(t *testing.T) {
	end := make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		<-end
	})
	defer close(end)
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	c.head()
	equal(t, "the body so far", c.bytes(5), "hello")
	p.conn().Close()
	c.isReset()
	p.wait()
}

// A client that does not take the end of its last response is reset: it would take what it
// got for all of it.
func TestAClientThatDoesNotTakeTheEndIsReset(t *testing.T) {
	p := newProxy(t, "127.0.0.1:1", limits(func(port *exchange.Port) { port.WriteIdle = 10 * time.Millisecond }))
	for _, request := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"} {
		near, far := testhouse.Pair(t)
		io.WriteString(far, request)
		testhouse.FillUp(near, far)
		c := p.front.NewConn(near, 1<<40)
		c.Drain()
		testhouse.Serve(c)
		if n, err := io.Copy(io.Discard, far); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: the client got %d bytes and then %v, want a reset", request, n, err)
		}
	}
}
