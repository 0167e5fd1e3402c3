package h1_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"headgate/internal/exchange"
)

// Many clients at once, each with requests of every kind, before servers that
// close, hint, answer early and stop: every client gets the answer to its own
// request, or can tell that it got none.
func TestManyClientsAtOnce(t *testing.T) {
	o := newOrigin(t, func(c *peer, n int) {
		rnd := rand.New(rand.NewPCG(uint64(n), 1))
		for {
			rq, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			if rnd.IntN(20) == 0 {
				c.try("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
			}
			if rq.Header.Get("Expect") != "" && rnd.IntN(40) > 0 {
				c.try("HTTP/1.1 100 Continue\r\n\r\n")
			}
			early := rnd.IntN(30) == 0
			body := rq.URL.Path
			if !early {
				b, err := io.ReadAll(rq.Body)
				if err != nil {
					return
				}
				body += string(b)
			}
			switch rnd.IntN(4) {
			case 0:
				c.try("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + hex(len(body)) + "\r\n" + body + "\r\n0\r\n\r\n")
			case 1:
				c.try("HTTP/1.1 200 OK\r\n\r\n" + body)
				return
			default:
				c.ok(body)
			}
			if early || rnd.IntN(30) == 0 {
				return
			}
		}
	})
	p := newProxy(t, o.addr)
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() { stress(t, p, n) })
	}
	for range 50 {
		e := p.logged()
		if e.reason == exchange.BadRequest || e.reason == exchange.Internal || e.reason == exchange.UpstreamInvalid {
			t.Errorf("reason %v: %s", e.reason, e.cause)
		}
	}
	clients.Wait()
}

// stress makes one client's requests. It begins with a new connection whenever
// the old one ends.
func stress(t *testing.T, p *proxy, n int) {
	rnd := rand.New(rand.NewPCG(uint64(n), 2))
	c := p.client()
	answered := 0
	for i := range 150 {
		path, size := "/"+itoa(n)+"/"+itoa(i)+"/", []int{0, 1, 100, 5000, 200000}[rnd.IntN(5)]
		body := strings.Repeat("b", size)
		switch rnd.IntN(4) {
		case 0:
			body = ""
			c.try("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		case 1:
			c.try(post(path, size))
			c.try(body)
		case 2:
			body = strings.Repeat("c", size+1)
			c.try("PUT " + path + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + hex(len(body)) + "\r\n")
			c.try(body + "\r\n0\r\n\r\n")
		case 3:
			c.try(post(path, size, "Expect: 100-continue"))
			c.try(body)
		}
		rs, err := http.ReadResponse(c.r, nil)
		for err == nil && rs.StatusCode < 200 {
			rs, err = http.ReadResponse(c.r, nil)
		}
		got := ""
		if err == nil {
			var b []byte
			b, err = io.ReadAll(rs.Body)
			got = string(b)
		}
		if err == nil && rs.StatusCode == 200 {
			answered++
			if got != path+body && got != path {
				t.Errorf("%s: got %.60q (%d bytes), want %d", path, got, len(got), len(path+body))
			}
		}
		if err != nil || rs.Close || rnd.IntN(40) == 0 {
			c.Close()
			c = p.client()
		}
	}
	if answered < 100 {
		t.Errorf("only %d of 150 requests were answered", answered)
	}
}
