package h2_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

// theirs is what net/http's server leaves behind for a while, in a test that
// compares with it.
var theirs = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*http2serverConn).serve"),
	goleak.IgnoreAnyFunction("net/http.(*http2serverConn).readFrames"),
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(theirs...); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

func TestStreamsBeyondThePortsLimitAreRefused(t *testing.T) {
	hold, begun := make(chan struct{}), make(chan struct{}, 3)
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		begun <- struct{}{}
		<-hold
		ex.Response.Status = 200
		return nil
	}), func(p *proxy, _ *upstream.Settings) { p.port.Streams = 2 })
	c := p.dial()
	for id := uint32(1); id <= 5; id += 2 {
		c.request(id, true, get...)
	}
	c.flush()
	<-begun
	<-begun
	f, err := c.next()
	if r, ok := f.(*http2.RSTStreamFrame); !ok || r.StreamID != 5 || r.ErrCode != http2.ErrCodeRefusedStream {
		t.Fatalf("got %v, %v, want REFUSED_STREAM for the third", f, err)
	}
	close(hold)
}

func TestDrainLosesNothing(t *testing.T) {
	hold, begun := make(chan struct{}), make(chan struct{}, 2)
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		begun <- struct{}{}
		<-hold
		ex.Response.Status = 200
		return nil
	}))
	c := p.dial()
	c.request(1, true, get...)
	c.flush()
	<-begun
	p.conn(0).Drain()
	f, err := c.next()
	if g, ok := f.(*http2.GoAwayFrame); !ok || g.LastStreamID != 1<<31-1 || g.ErrCode != http2.ErrCodeNo {
		t.Fatalf("got %v, %v", f, err)
	}
	f, err = c.next()
	ping, ok := f.(*http2.PingFrame)
	if !ok {
		t.Fatalf("got %v, %v", f, err)
	}
	// A request that was on its way is still served.
	c.request(3, true, get...)
	c.WritePing(true, ping.Data)
	c.request(5, true, get...) // this one comes too late
	c.flush()
	f, err = c.next()
	if g, ok := f.(*http2.GoAwayFrame); !ok || g.LastStreamID != 3 {
		t.Fatalf("got %v, %v", f, err)
	}
	<-begun
	close(hold)
	ended := 0
	for {
		f, err := c.ReadFrame()
		if err != nil {
			if !errors.Is(err, io.EOF) || ended != 2 {
				t.Errorf("ended with %v after %d responses", err, ended)
			}
			break
		}
		if f.Header().Flags.Has(http2.FlagHeadersEndStream) && f.Header().Type == http2.FrameHeaders {
			ended++
		}
	}
	c.nc.Close()
	p.wait0()
}

// A client that connects while a drain begins has its first request served before it is told: some
// clients would not send it any more.
func TestDrainWaitsForTheFirstRequest(t *testing.T) {
	p := newProxy(t, "", text("x"))
	c := p.connect()
	if f, err := c.ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
		t.Fatalf("got %v, %v, want SETTINGS", f, err)
	}
	p.conn(0).Drain()
	c.send([]byte(http2.ClientPreface))
	c.WriteSettings()
	c.pong()
	c.pong() // what was read at once with the SETTINGS is answered before anything else
	c.WriteSettingsAck()
	c.request(1, true, get...)
	c.flush()
	told, answered := false, false
	for {
		f, err := c.ReadFrame()
		if err != nil {
			break
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			told = true
		case *http2.PingFrame:
			c.WritePing(true, f.Data)
			c.flush()
		case *http2.MetaHeadersFrame, *http2.HeadersFrame:
			answered = true
		}
	}
	if !told || !answered {
		t.Errorf("answered %t, GOAWAY %t, want both", answered, told)
	}
	c.nc.Close()
	p.wait0()
}

// Without a first request, the connection ends a moment later.
func TestDrainEndsConnectionsWithoutRequests(t *testing.T) {
	p := newProxy(t, "", text("x"))
	c := p.dial()
	c.pong()
	p.conn(0).Drain()
	if code := c.goAway(); code != http2.ErrCodeNo {
		t.Errorf("got %v", code)
	}
	c.nc.Close()
	p.wait0()
}

func TestDrainEndsIdleConnections(t *testing.T) {
	p := newProxy(t, "", text("x"))
	c := p.dial()
	c.request(1, true, get...)
	c.flush()
	c.await(1)
	p.conn(0).Drain()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			break
		}
		if ping, ok := f.(*http2.PingFrame); ok {
			c.WritePing(true, ping.Data)
			c.flush()
		}
	}
	c.nc.Close()
	p.wait0()
}

func TestIdleConnectionsEnd(t *testing.T) {
	for _, keep := range []time.Duration{0, 50 * time.Millisecond} {
		p := newProxy(t, "", text("x"), limits(func(port *exchange.Port) { port.KeepAlive = keep }))
		c := p.dial()
		c.request(1, true, get...)
		c.flush()
		c.await(1)
		if code := c.goAway(); code != http2.ErrCodeNo {
			t.Errorf("got %v after %v", code, keep)
		}
	}
}

func TestSlowBeginningsEnd(t *testing.T) {
	begin := func(c *raw) { c.send([]byte(http2.ClientPreface)); c.WriteSettings() }
	tests := map[string]func(c *raw){
		"nothing":         func(*raw) {},
		"half a preface":  func(c *raw) { c.send([]byte(http2.ClientPreface[:10])) },
		"no SETTINGS":     func(c *raw) { c.send([]byte(http2.ClientPreface)) },
		"half a frame":    func(c *raw) { begin(c); c.WriteSettingsAck(); c.send([]byte{0, 0}) },
		"half a block":    func(c *raw) { begin(c); c.WriteSettingsAck(); c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}) },
		"no acknowledged": begin,
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, "", text("x"), limits(func(port *exchange.Port) { port.HeadTimeout = 50 * time.Millisecond }))
			c := p.connect()
			write(c)
			c.flush()
			if code := c.goAway(); code == http2.ErrCodeNo {
				t.Errorf("got %v", code)
			}
		})
	}
}

func TestGarbageEndsTheConnection(t *testing.T) {
	p := newProxy(t, "", text("x"))
	for _, garbage := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "\x16\x03\x01\x00\xa5\x01\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x07"} {
		c := p.connect()
		c.send([]byte(garbage + "garbage garbage garbage garbage"))
		c.flush()
		if code := c.goAway(); code != http2.ErrCodeProtocol && code != http2.ErrCodeFrameSize {
			t.Errorf("%q: got %v", garbage, code)
		}
	}
}

// TestClientThatLeavesIsNoticed closes the connection while the source waits.
func TestClientThatLeavesIsNoticed(t *testing.T) {
	begun := make(chan struct{})
	p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
		close(begun)
		for !ex.Front.Gone() {
			runtime.Gosched()
		}
		return exchange.Fail(exchange.ClientClosed, "gone")
	}))
	c := p.dial()
	c.request(1, true, get...)
	c.flush()
	<-begun
	c.nc.Close()
	if e := p.logged(); e.reason != exchange.ClientClosed || e.status != 499 {
		t.Errorf("logged %+v", e)
	}
}

// TestIdleConnectionIsSmall holds what an idle connection costs besides TLS. No connection
// keeps a worker for itself.
func TestIdleConnectionIsSmall(t *testing.T) {
	if racing {
		t.Skip("the race detector takes memory")
	}
	const conns = 400
	p := newProxy(t, "", text("x"), quiet)
	home := func(goroutines int) {
		for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines, want %d", runtime.NumGoroutine(), goroutines)
			}
		}
	}
	heap := func() int64 {
		for range 5 { // stacks shrink by half each time
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	sockets := make([]net.Conn, 0, conns)
	first := runtime.NumGoroutine()
	before := heap()
	for range conns {
		c := p.dial()
		c.request(1, true, get...)
		c.flush()
		c.await(1)
		sockets = append(sockets, c.nc)
	}
	home(first + conns + 4) // the workers that they share
	// About 2 KiB of it are the client, 8 KiB the stack of the test that serves it. What
	// others still hold on a busy machine is let go in time.
	var each int64
	testhouse.Eventually(t, "an idle connection takes 16 KiB at most", func() bool {
		each = (heap() - before) / conns
		return each <= 16<<10
	})
	t.Logf("%d bytes a connection, with the client's socket", each)
	runtime.KeepAlive(sockets)
}

// TestABrokenInvariantEndsOneConnection lets a goroutine that serves a stream panic outside
// of its exchange: its connection ends, another is served, and everything is given back.
func TestABrokenInvariantEndsOneConnection(t *testing.T) {
	var log testhouse.Log
	p := newProxy(t, "", text("hello"), limits(func(port *exchange.Port) {
		serve := port.Serve
		port.Serve = func(ex *exchange.Exchange) {
			if ex.Request.Path == "/broken" {
				panic("a test broke it")
			}
			serve(ex)
		}
	}), func(p *proxy, _ *upstream.Settings) { p.front.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	other := p.dial()
	other.request(1, true, get...)
	other.flush()
	other.await(1)

	c := p.dial()
	c.request(1, true, ":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/broken")
	c.flush()
	for {
		if _, err := c.next(); err != nil {
			break
		}
	}
	testhouse.Eventually(t, "the connection has ended", func() bool { return p.open.Load() == 1 })
	if text := log.String(); !strings.Contains(text, "broken invariant") || !strings.Contains(text, "a test broke it") || !strings.Contains(text, "HTTP/2 connection") {
		t.Errorf("the log says %q", text)
	}
	other.request(3, true, get...)
	other.flush()
	if rs := other.await(3); string(rs.body) != "hello" {
		t.Errorf("the other connection got %+v", rs)
	}
}
