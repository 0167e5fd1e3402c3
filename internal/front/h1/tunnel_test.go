package h1_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

const (
	upgradeRequest = "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	switching      = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-X: 1\r\n\r\n"
)

// tunnel returns both ends of an upgraded connection.
func tunnel(t *testing.T, options ...option) (p *proxy, client, server *peer) {
	t.Helper()
	peers, end := make(chan *peer), make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		if head := c.head(); !strings.Contains(head, "Connection: upgrade\r\nUpgrade: websocket\r\n") {
			t.Errorf("the server got %q", head)
		}
		c.send(switching)
		peers <- c
		<-end
	})
	t.Cleanup(func() { close(end) })
	p = newProxy(t, o.addr, options...)
	client = p.client()
	client.send(upgradeRequest)
	server = <-peers
	if head := client.head(); !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "Upgrade: websocket\r\n") || !strings.Contains(head, "Connection: upgrade\r\n") {
		t.Errorf("the client got %q", head)
	}
	return p, client, server
}

func TestTunnelCarriesBothWays(t *testing.T) {
	p, client, server := tunnel(t)
	for range 100 {
		client.send("ping")
		equal(t, "at the server", server.bytes(4), "ping")
		server.send("pong!")
		equal(t, "at the client", client.bytes(5), "pong!")
	}
	long := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	go client.send(long)
	go server.send(long)
	if server.bytes(len(long)) != long || client.bytes(len(long)) != long {
		t.Error("bytes were lost or changed")
	}
	client.Close()
	server.ends()
	server.Close()
	e := p.logged()
	equal(t, "path", e.path, "/ws")
	equal(t, "host", e.host, "a.test")
	equal(t, "status", e.status, 101)
	equal(t, "sent", e.sent, 500+int64(len(long)))
	equal(t, "received", e.received, 400+int64(len(long)))
	p.wait()
}

// A tunnel on which nothing comes needs neither the goroutine that began it nor another.
func TestTunnelGoesOnWithoutServe(t *testing.T) {
	peers, end := make(chan *peer), make(chan struct{})
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.send(switching)
		peers <- c
		<-end
	})
	t.Cleanup(func() { close(end) })
	p := newProxy(t, o.addr)
	near, far := testhouse.Pair(t)
	c := p.front.NewConn(near, 1<<40)
	served := make(chan func(func()) bool)
	go func() { served <- c.Serve() }()
	io.WriteString(far, upgradeRequest)
	server := <-peers
	carry := <-served
	if carry == nil {
		t.Fatal("the connection has ended with its tunnel")
	}
	carried, over := make(chan bool, 1), make(chan struct{})
	go func() { carried <- carry(func() { close(over) }) }()
	server.send("pong")
	answer := make([]byte, 512)
	for got := ""; !strings.HasSuffix(got, "pong"); {
		n, err := far.Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		got += string(answer[:n])
	}
	if runtime.GOOS == "linux" {
		if !<-carried {
			t.Error("the tunnel was not carried")
		}
		select {
		case <-over:
			t.Error("it is over already")
		default:
		}
	}
	io.WriteString(far, "ping")
	equal(t, "at the server", server.bytes(4), "ping")
	far.Close()
	server.ends()
	server.Close()
	<-over
	if c.Serve() != nil {
		t.Error("the connection goes on after its tunnel")
	}
	e := p.logged()
	equal(t, "status", e.status, 101)
	equal(t, "sent", e.sent, 4)
	equal(t, "received", e.received, 4)
}

func TestTunnelHalfCloses(t *testing.T) {
	p, client, server := tunnel(t)
	client.send("last")
	client.CloseWrite()
	equal(t, "at the server", server.rest(), "last")
	server.send("still talking")
	equal(t, "at the client", client.bytes(13), "still talking")
	server.CloseWrite()
	client.ends()
	p.wait()

	p, client, server = tunnel(t)
	server.send("last")
	server.CloseWrite()
	equal(t, "at the client", client.rest(), "last")
	client.send("still talking")
	equal(t, "at the server", server.bytes(13), "still talking")
	client.CloseWrite()
	server.ends()
	p.wait()
}

// A side that is reset resets the other, which would else take what it got for all of it.
func TestTunnelPassesAResetOn(t *testing.T) {
	for _, first := range []string{"", "some of it"} {
		p, client, server := tunnel(t)
		client.send(first)
		equal(t, "at the server", server.bytes(len(first)), first)
		client.reset()
		server.isReset()
		p.wait()
		p, client, server = tunnel(t)
		server.send(first)
		equal(t, "at the client", client.bytes(len(first)), first)
		server.reset()
		client.isReset()
		p.wait()
	}
}

// One whose own side has ended in order is reset too, so that it does not send on for
// nobody.
func TestTunnelPassesAResetOnAfterAnEnd(t *testing.T) {
	p, client, server := tunnel(t)
	client.send("last")
	client.CloseWrite()
	equal(t, "at the server", server.rest(), "last")
	client.reset()
	for server.try("more") == nil {
		runtime.Gosched()
	}
	p.wait()
}

// A tunnel that is cut, as its time to drain is over, ends with a reset for both.
func TestTunnelThatIsCutIsReset(t *testing.T) {
	p, client, server := tunnel(t)
	client.send("some of it")
	equal(t, "at the server", server.bytes(10), "some of it")
	p.conn().Close()
	server.isReset()
	client.isReset()
	p.wait()
}

func TestTunnelBytesAlongWithTheHeads(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		c.head()
		c.send(switching + "early server")
		equal(t, "at the server", c.bytes(12), "early client")
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(upgradeRequest + "early client")
	c.head()
	equal(t, "at the client", c.bytes(12), "early server")
	c.ends()
}

// A server that refuses an upgrade answers an ordinary request: what the client
// sent behind it is the next request.
func TestUpgradeRefused(t *testing.T) {
	o := newOrigin(t, echo)
	p := newProxy(t, o.addr)
	c := p.client()
	c.send(upgradeRequest + "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
	equal(t, "first", c.answer("GET").body, "GET /ws ")
	equal(t, "second", c.answer("GET").body, "GET /next ")
}

func TestTunnelIdle(t *testing.T) {
	short := limits(func(p *exchange.Port) { p.Limits.TunnelIdle = 200 * time.Millisecond })
	p, client, server := tunnel(t, short)
	// One direction is silent all the time, the other is not.
	for range 8 {
		server.send("x")
		client.bytes(1)
		<-time.After(60 * time.Millisecond)
	}
	client.gone()
	server.gone()
	p.wait()
}

// An answer that switches needs a request that asked for it; with a body there
// is no upgrade.
func TestUpgradeWithABodyIsNone(t *testing.T) {
	o := newOrigin(t, func(c *peer, _ int) {
		rq := c.request()
		equal(t, "upgrade", rq.Header.Get("Upgrade"), "")
		c.ok(rq.body)
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nhi")
	equal(t, "body", c.answer("POST").body, "hi")
}

func TestLargeBodies(t *testing.T) {
	const size = 100 << 20
	send := func(w io.Writer, n int) {
		piece := make([]byte, 1<<20)
		for i := range piece {
			piece[i] = byte(i * 7)
		}
		for ; n > 0; n -= len(piece) {
			if _, err := w.Write(piece[:min(n, len(piece))]); err != nil {
				t.Errorf("with %d bytes to go: %v", n, err)
				return
			}
		}
	}
	receive := func(c *peer, n int) {
		piece := make([]byte, 1<<20)
		for at := 0; at < n; at += len(piece) {
			if _, err := io.ReadFull(c.r, piece); err != nil {
				t.Errorf("after %d bytes: %v", at, err)
				return
			}
			for i := 0; i < len(piece); i += 4099 {
				if piece[i] != byte(i*7) {
					t.Errorf("byte %d is %#x", at+i, piece[i])
					return
				}
			}
		}
	}
	o := newOrigin(t, func(c *peer, _ int) {
		for {
			head, err := c.r.Peek(5)
			if err != nil {
				return
			}
			post := string(head) == "POST "
			line := c.head()
			switch {
			case post:
				receive(c, size)
				c.ok("")
			case strings.HasPrefix(line, "GET /length "):
				c.try("HTTP/1.1 200 OK\r\nContent-Length: " + itoa(size) + "\r\n\r\n")
				send(c, size)
			default:
				c.try("HTTP/1.1 200 OK\r\n\r\n")
				send(c, size)
				return
			}
		}
	})
	p := newProxy(t, o.addr)
	c := p.client()
	c.send("GET /length HTTP/1.1\r\nHost: a\r\n\r\n")
	c.head()
	receive(c, size)
	equal(t, "sent", p.logged().sent, size)
	c.send(post("/", size))
	send(c, size)
	equal(t, "status", c.answer("POST").StatusCode, 200)
	equal(t, "received", p.logged().received, size)
	c.send("GET /close HTTP/1.0\r\nHost: a\r\n\r\n")
	c.head()
	receive(c, size)
	c.ends()
	equal(t, "connections to the server", o.conns.Load(), 1)
}
