package h1_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// maxIdleTunnel is how much heap a quiet tunnel may hold, in bytes, the test's own
// two connections to it among that: less than one buffer for each of its four heads
// and directions would be.
const maxIdleTunnel = 12 << 10

// live returns the bytes on the heap that are in use.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestQuietTunnelsHoldNoBuffers(t *testing.T) {
	const n = 200
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var held []net.Conn
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		held = append(held, c)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			keep(c)
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, switching)
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
		for _, c := range held {
			c.Close()
		}
	})
	p := newProxy(t, l.Addr().String())
	before := live()
	answer := make([]byte, 512)
	for range n {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		keep(c)
		io.WriteString(c, upgradeRequest)
		if _, err := c.Read(answer); err != nil {
			t.Fatal(err)
		}
	}
	if each := (live() - before) / n; each > maxIdleTunnel {
		t.Errorf("a quiet tunnel holds %d bytes, want at most %d", each, maxIdleTunnel)
	}
}
