package h2_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// pipeline sends the same batch of requests again and again and counts the
// answers by their bytes, so that the client allocates nothing.
type pipeline struct {
	tb    testing.TB
	nc    net.Conn
	batch []byte
	ids   []int // where the stream numbers stand in the batch
	id    uint32
	read  []byte
}

// prepare prepares a batch of n requests on a connection whose tables are warm.
func (p *proxy) prepare(n int, fields ...string) *pipeline {
	c := p.dial()
	c.request(1, true, fields...)
	c.flush()
	c.await(1)
	pl := &pipeline{tb: p.t, nc: c.nc, id: 3, read: make([]byte, 64<<10)}
	block := c.block(fields...)
	for range n {
		pl.ids = append(pl.ids, c.out.Len()+5)
		c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
		// The answers fill the connection's window: open it again.
		c.WriteWindowUpdate(0, 5)
	}
	pl.batch = append(pl.batch, c.out.Bytes()...)
	c.out.Reset()
	return pl
}

// run sends the batch and reads all answers, which end with the same text.
func (pl *pipeline) run() {
	for _, at := range pl.ids {
		b := pl.batch[at:]
		b[0], b[1], b[2], b[3] = byte(pl.id>>24), byte(pl.id>>16), byte(pl.id>>8), byte(pl.id)
		pl.id += 2
	}
	if _, err := pl.nc.Write(pl.batch); err != nil {
		pl.tb.Fatal(err)
	}
	for ended, skip, head := 0, 0, 0; ended < len(pl.ids); {
		n, err := pl.nc.Read(pl.read[head:])
		if err != nil {
			pl.tb.Fatal(err)
		}
		b := pl.read[:head+n]
		for {
			if skip >= len(b) {
				skip, head = skip-len(b), 0
				break
			}
			b, skip = b[skip:], 0
			if len(b) < 9 {
				head = copy(pl.read, b)
				break
			}
			if b[3] == 0 && b[4]&1 != 0 {
				ended++
			}
			skip = 9 + int(b[0])<<16 + int(b[1])<<8 + int(b[2])
			if ended == len(pl.ids) && skip == len(b) {
				return
			}
		}
	}
}

// TestRequestsAllocateNothing holds what a request without a body costs.
func TestRequestsAllocateNothing(t *testing.T) {
	if racing {
		t.Skip("the race detector allocates")
	}
	p := newProxy(t, "", text("hello"), quiet)
	pl := p.prepare(16, append(bytesFields(get), "user-agent", "x", "accept", "*/*", "cookie", "a=b", "cookie", "c=d")...)
	for range 200 {
		pl.run()
	}
	if n := testing.AllocsPerRun(500, pl.run) / 16; n > 0.1 {
		t.Errorf("%.2f allocations a request", n)
	}
}

// BenchmarkRequest measures one request of sixteen on one connection, client
// included.
func BenchmarkRequest(b *testing.B) {
	p := newProxy(b, "", text("hello"), quiet)
	pl := p.prepare(16, get...)
	pl.nc.SetDeadline(time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		pl.run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/request")
}
