package interop

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// servers starts two servers that behave, one that is slow and fails now and then as a
// program does, one that breaks the protocol, and one of streams.
func (s *soak) servers() {
	s.behaves = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Id", r.Header.Get("X-Id"))
		if r.Method == http.MethodPost { // the body comes back
			body, err := io.ReadAll(r.Body) // whole: a net/http server reads no more once it has begun to answer
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			w.Write(body)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Write(content(r.URL.Path))
	})
	for i := range s.good {
		server := httptest.NewServer(s.behaves)
		s.t.Cleanup(server.Close)
		s.good[i] = server.Listener.Addr().String()
	}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(rand.N(30 * time.Millisecond)) // so that requests for the same page meet
		if rand.IntN(20) == 0 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		w.Header().Set("ETag", `"`+r.URL.Path+`"`)
		if r.Header.Get("If-None-Match") != "" && rand.IntN(2) == 0 {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.behaves(w, r)
	}))
	s.t.Cleanup(slow.Close)
	s.slow = slow.Listener.Addr().String()
	s.bad = s.listens(s.misbehaves)
	s.stream = s.listens(func(c net.Conn) { io.Copy(c, c) })
}

// listens serves connections until the test ends.
func (s *soak) listens(serve func(net.Conn)) string {
	return serveStreams(s.t, func(c net.Conn) {
		c.SetDeadline(time.Now().Add(patience))
		serve(c)
	})
}

// misbehaves answers some requests rightly, and breaks off or breaks the protocol at others.
func (s *soak) misbehaves(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		rq, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if rand.IntN(10) > 0 {
			io.Copy(io.Discard, rq.Body)
		}
		body := content(rq.URL.Path)
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Id: %s\r\n", rq.Header.Get("X-Id"))
		length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
		switch rand.IntN(16) {
		case 0:
			return
		case 1:
			c.(*net.TCPConn).SetLinger(0)
			return
		case 2: // too short
			io.WriteString(c, head+length+"\r\n")
			c.Write(body[:len(body)/2])
			return
		case 3: // two framings
			fmt.Fprintf(c, "%s%sTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", head, length)
			return
		case 4: // broken chunks
			fmt.Fprintf(c, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n", head, len(body), body)
			return
		case 5: // no HTTP
			io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n\x00\xff")
			return
		case 6: // a head without an end
			io.WriteString(c, head+"X: "+strings.Repeat("x", 200_000))
			return
		case 7: // many interim responses
			for range 5 {
				io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
			}
			io.WriteString(c, head+length+"\r\n")
			c.Write(body)
		case 8: // more than it says, which is the next response
			// In one write: what comes later, when the next request was sent, is its response
			// for every proxy.
			surplus := "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Id: poisoned\r\n\r\npoisoned"
			if len(body) > 1000 {
				return // a long one may be written in parts
			}
			io.WriteString(c, head+length+"\r\n"+string(body)+surplus)
			return
		case 9: // in small parts
			io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n")
			for len(body) > 0 {
				n := min(len(body), 1+rand.IntN(3000))
				fmt.Fprintf(c, "%x\r\n%s\r\n", n, body[:n])
				body = body[n:]
			}
			io.WriteString(c, "0\r\nX-Trailer: end\r\n\r\n")
		default:
			io.WriteString(c, head+length+"\r\n")
			c.Write(body)
		}
	}
}
