package control

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/testhouse"
)

// What clients may hold of memory in the next test, for each port, and what all may take
// of it with what else the process and its clients in the test need.
const (
	memoryOfPort   = 24 << 20
	memoryOfClient = 12 << 20
	memoryOfAll    = 2*memoryOfPort + 64<<20
)

// One client that has thousands of requests under way over all sockets, which hang at the
// server, whose responses it does not read, or whose heads and bodies do not come, holds
// a bounded share of memory, and nobody else notices.
func TestMemoryOverAllSockets(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.URL.Path == "/hang" {
			select {
			case <-hang:
			case <-rq.Context().Done():
			}
			return
		}
		piece := make([]byte, 64<<10)
		for range 128 { // 8 MiB
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() { close(hang); server.Close() })
	at := testhouse.Addresses(t, 2)
	limits := fmt.Sprintf(", drain_timeout: 100ms, limits: {max_memory: %d, max_memory_per_client: %d}", memoryOfPort, memoryOfClient)
	start(t, fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false, recent: {enabled: false}}
ports:
  one: {address: %q, protocol: http%s}
  two: {address: %q, protocol: http, h2c: true%[2]s}
proxies:
  p: {routes: [{path: /fixed, fixed_response: {status: 204}}, {servers: [{url: %[4]q}]}]}
`, at[0], limits, at[1], server.URL))

	before := inUse()
	for i := range 100 {
		path := [...]string{"/hang", "/big"}[i%2]
		manyStreams(t, at[1], path)
		for _, text := range []string{
			"GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n",
			"POST " + path + " HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9999999\r\n\r\n" + strings.Repeat("x", 32<<10),
			"GET / HTTP/1.1\r\nHost: a.test\r\nX-Long: " + strings.Repeat("x", 16<<10),
			strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: a.test\r\n\r\n", 300),
		} {
			go fmt.Fprint(connectFrom(t, "127.0.0.1", at[0]), text)
		}
	}
	for i := range 20 {
		for _, a := range at {
			c := connectFrom(t, "127.0.0.2", a)
			fmt.Fprint(c, "GET /fixed HTTP/1.1\r\nHost: a.test\r\n\r\n")
			if got, err := c.answer(); got != 204 || err != nil {
				t.Errorf("request %d of another client to %s: got %d and %v", i, a, got, err)
			}
			c.Close()
		}
		if used := inUse() - before; used > memoryOfAll {
			t.Fatalf("after %d requests of another client %d MiB are in use, want at most %d", i, used>>20, memoryOfAll>>20)
		}
	}
}

// inUse returns what the heap and the stacks hold, in bytes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// manyStreams opens a connection of HTTP/2 with 256 requests whose responses it takes
// nothing of.
func manyStreams(t *testing.T, address, path string) {
	t.Helper()
	c := connectFrom(t, "127.0.0.1", address)
	var out, block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range uint32(256) {
		block.Reset()
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", path}} {
			_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	}
	if _, err := c.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	go func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }(c.Conn)
}
