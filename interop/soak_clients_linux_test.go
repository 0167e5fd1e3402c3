package interop

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// clients starts those that behave and check what they get.
func (s *soak) clients() {
	trusting := &tls.Config{InsecureSkipVerify: true}
	plain := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	second := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: true}}
	at := s.lossy(s.quic)
	third := &http3.Transport{TLSClientConfig: trusting.Clone(), QUICConfig: &quic.Config{MaxIdleTimeout: 20 * time.Second, KeepAlivePeriod: time.Second}}
	s.t.Cleanup(func() { third.Close() })

	s.each(4, func(r *rand.Rand) { s.ask(r, plain, "http/1.1", "http://"+s.web) })
	s.each(3, func(r *rand.Rand) { s.ask(r, second, "http/2", "https://"+s.secure) })
	s.each(2, func(r *rand.Rand) {
		s.ask(r, &http.Client{Timeout: patience, Transport: third}, "http/3", "https://"+at)
	})
	s.each(2, s.streams)
}

// ask sends one request and checks the response.
func (s *soak) ask(r *rand.Rand, client *http.Client, proto, url string) {
	kind := []string{"good", "good", "bad", "cached", "cached", "packed", "signed"}[r.IntN(7)]
	path := fmt.Sprintf("/%d/%d", r.IntN(1<<30), []int{0, 10, 1000, 20_000, 300_000}[r.IntN(5)])
	if kind == "cached" {
		path = fmt.Sprintf("/%d/%d", r.IntN(10), 5000) // few pages, for many clients
	}
	method, want := http.MethodGet, content(path)
	var sent io.Reader
	if kind == "good" && proto != "beside" && r.IntN(3) == 0 {
		method, sent = http.MethodPost, bytes.NewReader(want)
	}
	rq, err := http.NewRequestWithContext(s.ctx, method, url+path, sent)
	if err != nil {
		s.t.Fatal(err)
	}
	if rq.Host = kind + ".test"; kind == "signed" {
		rq.Host = "signed.example.com"
	}
	id := fmt.Sprint(r.Uint64())
	rq.Header.Set("X-Id", id)
	rs, err := client.Do(rq)
	if proto == "beside" && errors.Is(err, syscall.ECONNRESET) {
		// A port that opens for a change that is then refused was open for a moment, and one
		// that closes does not wait for who says nothing for a second.
		s.saw(proto + " tried again")
		rs, err = client.Do(rq)
	}
	if err != nil {
		if s.ctx.Err() == nil && kind != "bad" && proto != "http/3" { // packets are lost there
			s.wrong("%s %s %s: %v", proto, kind, path, err)
		}
		s.saw(proto + " failed")
		return
	}
	defer rs.Body.Close()
	var body io.Reader = rs.Body
	leave := r.IntN(20) == 0 && len(want) > 10_000
	if leave {
		body = io.LimitReader(body, 5000) // and go away
	}
	got, err := io.ReadAll(body)
	switch {
	case leave:
		s.saw(proto + " left")
		return
	case kind == "bad" && (err != nil || rs.StatusCode >= 500), kind == "cached" && rs.StatusCode == http.StatusInternalServerError:
		s.saw(proto + " " + kind + " failed")
		return
	case err != nil && (s.ctx.Err() != nil || proto == "http/3"):
		s.saw(proto + " failed")
		return
	case err != nil || rs.StatusCode != http.StatusOK:
		s.wrong("%s %s %s %s: %d with %d bytes, %v: %.200s", proto, kind, method, path, rs.StatusCode, len(got), err, got)
		return
	case !bytes.Equal(got, want):
		s.never("%s %s %s %s: %d bytes that are not those of the server, which has %d", proto, kind, method, path, len(got), len(want))
		return
	case kind != "cached" && rs.Header.Get("X-Id") != id:
		s.never("%s %s %s: the response is that of request %q", proto, kind, path, rs.Header.Get("X-Id"))
		return
	}
	s.saw(proto + " " + kind)
}

// streams sends bytes by a TCP proxy, which come back.
func (s *soak) streams(r *rand.Rand) {
	c, err := net.DialTimeout("tcp", s.echo, patience)
	if err != nil {
		s.wrong("stream: %v", err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	sent := content(fmt.Sprintf("/%d/%d", r.IntN(1<<30), 1+r.IntN(200_000)))
	go func() {
		c.Write(sent)
		c.(*net.TCPConn).CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
		s.wrong("stream: %d of %d bytes, %v", len(got), len(sent), err)
		return
	}
	s.saw("stream")
}

// lossy returns the address of a network to another address that loses packets, and gives
// clients new addresses now and then, as a phone that changes its network has.
func (s *soak) lossy(to string) string {
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close() })
	var mu sync.Mutex
	out := map[string]net.Conn{}
	go func() {
		p := make([]byte, 1<<16)
		for {
			n, client, err := in.ReadFrom(p)
			if err != nil {
				return
			}
			if rand.IntN(100) < 2 {
				continue
			}
			mu.Lock()
			c := out[client.String()]
			if c == nil || rand.IntN(3000) == 0 {
				next, err := net.Dial("udp", to)
				if err != nil {
					mu.Unlock()
					continue
				}
				if c != nil {
					old := c
					time.AfterFunc(time.Second, func() { old.Close() }) // what is on its way still arrives
					s.saw("http/3 moved to another address")
				}
				c = next
				out[client.String()] = c
				go func() {
					p := make([]byte, 1<<16)
					for {
						next.SetReadDeadline(time.Now().Add(patience))
						n, err := next.Read(p)
						if err != nil {
							return
						}
						if rand.IntN(100) >= 2 {
							in.WriteTo(p[:n], client)
						}
					}
				}()
			}
			mu.Unlock()
			c.Write(p[:n])
		}
	}()
	return in.LocalAddr().String()
}

// hostile starts clients that break the protocol. They check nothing: others must not notice.
func (s *soak) hostile() {
	attacks := []func(r *rand.Rand, c net.Conn){
		func(r *rand.Rand, c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\nHost: good.test\r\n") },
		func(r *rand.Rand, c net.Conn) {
			for range r.IntN(2000) {
				c.Write([]byte{byte(r.Uint32())})
			}
		},
		func(r *rand.Rand, c net.Conn) {
			io.WriteString(c, "POST /1/5 HTTP/1.1\r\nHost: good.test\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n")
		},
		func(r *rand.Rand, c net.Conn) {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: good.test\r\nX: %s\r\n\r\n", strings.Repeat("x", 1<<20))
		},
		func(r *rand.Rand, c net.Conn) { // pipelined, and gone
			io.WriteString(c, strings.Repeat("GET /7/300000 HTTP/1.1\r\nHost: good.test\r\n\r\n", 20))
			c.(*net.TCPConn).SetLinger(0)
		},
		func(r *rand.Rand, c net.Conn) { // a body that ends early
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: bad.test\r\nContent-Length: 100000\r\n\r\nshort")
		},
		func(r *rand.Rand, c net.Conn) { // HTTP/2 with prior knowledge, and then garbage
			io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			for range 50 {
				c.Write([]byte{0, 0, byte(r.IntN(60)), byte(r.IntN(12)), byte(r.IntN(256)), 0, 0, 0, byte(r.IntN(8))})
			}
		},
	}
	s.each(2, func(r *rand.Rand) {
		c, err := net.DialTimeout("tcp", []string{s.web, s.secure, s.echo}[r.IntN(3)], patience)
		if err != nil {
			s.wrong("an attack cannot connect: %v", err)
			return
		}
		c.SetDeadline(time.Now().Add(time.Second))
		attacks[r.IntN(len(attacks))](r, c)
		if r.IntN(2) == 0 {
			io.Copy(io.Discard, c)
		}
		c.Close()
		s.saw("attack")
		s.pause(r, 100*time.Millisecond)
	})
}
