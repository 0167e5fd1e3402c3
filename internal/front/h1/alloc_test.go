//go:build !race

package h1_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"headgate/internal/upstream"
)

// A plain request allocates nothing on its whole way, from the client's socket
// to the server's and back.
func TestPlainRequestsAllocateNothing(t *testing.T) {
	body := strings.Repeat("x", 100)
	for name, exchange := range map[string]struct{ request, response string }{
		"get":      {"GET /some/path?query HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n", "HTTP/1.1 200 OK\r\nServer: y\r\nContent-Length: 100\r\n\r\n" + body},
		"post":     {"POST /some HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\n" + body, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + body},
		"chunked":  {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + body + "\r\n0\r\n\r\n"},
		"no body":  {"GET / HTTP/1.1\r\nHost: a.test\r\nIf-None-Match: 1\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n"},
		"longer":   {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000)},
		"spliced":  {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000)},
		"no route": {"GET / HTTP/1.1\r\nHost: a.test\r\nAccept: text/html\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := []byte(exchange.response)
			o := newOrigin(t, func(c *peer, _ int) {
				b := make([]byte, 1<<12)
				for {
					for read := 0; !whole(b[:read]); {
						n, err := c.TCPConn.Read(b[read:])
						if err != nil {
							return
						}
						read += n
					}
					c.TCPConn.Write(response)
				}
			})
			options := []option{func(p *proxy, _ *upstream.Settings) { p.pipe.Done = nil }} // which copies
			if exchange.response == "" {
				options = append(options, refuseAll)
			}
			p := newProxy(t, o.addr, options...)
			c := p.client()
			c.send(exchange.request)
			head := c.head()
			got := make([]byte, len(head)+len(c.answerBody(head)))
			request := []byte(exchange.request)
			if n := allocations(t, c.TCPConn, request, got); n > 0.02 {
				t.Errorf("%v allocations a request", n)
			}
		})
	}
}

// whole reports whether b is a request with its 100 bytes of body, if any.
func whole(b []byte) bool {
	i := bytes.Index(b, []byte("\r\n\r\n"))
	return i >= 0 && (b[0] != 'P' || len(b) >= i+4+100)
}

// allocations returns how often the process allocates for one round trip.
func allocations(t *testing.T, nc net.Conn, request, answer []byte) float64 {
	const rounds = 2000
	round := func() {
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, answer); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		round()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / rounds
}
