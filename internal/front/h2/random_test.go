package h2_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"headgate/internal/exchange"
)

// pieces is a body whose bytes come in pieces, and its end by itself. The byte at i is
// byte(i).
type pieces struct{ at, size int }

func (b *pieces) Read(p []byte) (int, error) {
	runtime.Gosched() // the client speaks between them
	if b.at == b.size {
		return 0, io.EOF
	}
	n := min(len(p), b.size-b.at, 1+rand.IntN(3000))
	for i := range p[:n] {
		p[i] = byte(b.at + i)
	}
	b.at += n
	return n, nil
}
func (b *pieces) Ready() bool  { return rand.IntN(2) == 0 }
func (b *pieces) Close() error { return nil }

// TestClientsThatPlayWithWindowsGetAllTheyAskFor opens streams, changes windows, up and
// down and below zero, and resets streams, all at random. What was not reset is whole in
// the end.
func TestClientsThatPlayWithWindowsGetAllTheyAskFor(t *testing.T) {
	p := newProxy(t, "", quiet, source(func(ex *exchange.Exchange) *exchange.Answer {
		size, err := strconv.Atoi(strings.TrimPrefix(ex.Request.Path, "/"))
		if err != nil {
			t.Errorf("path %s", ex.Request.Path)
		}
		ex.Response.Status, ex.Response.Length = 200, -1
		ex.Response.Body = &pieces{size: size}
		return nil
	}))
	seed := rand.Uint64()
	for i := range uint64(60) {
		player := &player{raw: p.dial(), random: rand.New(rand.NewPCG(seed, i)), asked: map[uint32]*asked{}}
		player.play()
		player.nc.Close()
		if t.Failed() {
			t.Fatalf("seed %d, client %d", seed, i)
		}
	}
}

// player is such a client.
type player struct {
	*raw
	random *rand.Rand
	last   uint32 // number of a stream
	asked  map[uint32]*asked
}

// asked is a request of a player.
type asked struct {
	response
	size  int
	reset bool // by the client
	ended bool
}

func (c *player) play() {
	for round := range byte(12) {
		for range c.random.IntN(3) {
			c.ask()
		}
		for range c.random.IntN(4) {
			c.meddle()
		}
		c.WritePing(false, [8]byte{round})
		c.flush()
		c.hear(func(f http2.Frame) bool {
			ping, is := f.(*http2.PingFrame)
			return is && ping.Data[0] == round
		})
	}
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	c.WriteWindowUpdate(0, 1<<22)
	c.WritePing(false, [8]byte{255})
	c.flush()
	c.hear(func(http2.Frame) bool {
		for _, a := range c.asked {
			if !a.ended && !a.reset {
				return false
			}
		}
		return true
	})
	for id, a := range c.asked {
		want, _ := io.ReadAll(&pieces{size: a.size})
		if !a.reset && (a.status != "200" || a.gone || !bytes.Equal(a.body, want)) {
			c.t.Errorf("stream %d: status %s, reset %v, %d bytes, want %d", id, a.status, a.gone, len(a.body), a.size)
		}
	}
}

// ask sends a request.
func (c *player) ask() {
	id := c.last + 1
	c.last += 2
	a := &asked{size: []int{0, 1, 100, 3000, 20000, 70000}[c.random.IntN(6)]}
	c.asked[id] = a
	c.request(id, true, ":method", "GET", ":scheme", "http", ":authority", "example.com", ":path", "/"+strconv.Itoa(a.size))
}

// meddle sends a frame about windows, or resets a stream.
func (c *player) meddle() {
	stream := 1 + 2*uint32(c.random.IntN(int(c.last/2)+1))
	a := c.asked[stream]
	switch {
	case c.random.IntN(3) == 0:
		c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 10, 1000, 65535}[c.random.IntN(4)]})
	case c.random.IntN(3) == 0:
		c.WriteWindowUpdate(0, 1+uint32(c.random.IntN(50000)))
	case a == nil || a.ended || a.reset:
	case c.random.IntN(8) == 0:
		a.reset = true
		c.WriteRSTStream(stream, http2.ErrCodeCancel)
	default:
		c.WriteWindowUpdate(stream, 1+uint32(c.random.IntN(20000)))
	}
}

// hear reads frames until one is the last.
func (c *player) hear(last func(http2.Frame) bool) {
	c.t.Helper()
	for {
		f, err := c.next()
		if err != nil {
			c.t.Fatal(err)
		}
		if g, is := f.(*http2.GoAwayFrame); is {
			c.t.Fatalf("GOAWAY %v %s", g.ErrCode, g.DebugData())
		}
		if a := c.asked[f.Header().StreamID]; a != nil {
			a.ended = a.take(f) || a.ended
		}
		if last(f) {
			return
		}
	}
}
