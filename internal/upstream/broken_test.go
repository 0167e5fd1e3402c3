package upstream

import (
	"io"
	"net"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
)

// brokenFront is a front that panics where a test says so.
type brokenFront struct {
	exchangetest.Front
	informs bool
}

// Inform panics or does nothing.
func (f *brokenFront) Inform(*exchange.Exchange, int, *header.List) error {
	if f.informs {
		panic("a test broke it")
	}
	return nil
}

// unreadable is a body that panics when it is asked whether it is there.
type unreadable struct{ exchange.Body }

func (unreadable) Ready() bool { panic("a test broke it") }

// An attempt that panics holds nothing any more: no place of the server, no connection, no
// stream.
func TestAnAttemptThatPanicsHoldsNothing(t *testing.T) {
	hints := func(c net.Conn) {
		for b := make([]byte, 8192); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
	for name, server := range map[string]func() Target{
		"HTTP/1.1": func() Target { return target(testhouse.Server(t, hints), 1) },
		"HTTP/2": func() Target {
			to := target(testhouse.Server(t, hintsInHTTP2), 1)
			to.HTTP2 = true
			return to
		},
	} {
		for what, option := range map[string]exchangetest.Option{
			"interim response": func(ex *exchange.Exchange) { ex.Front = &brokenFront{informs: true} },
			"request body": func(ex *exchange.Exchange) {
				ex.Request.Method, ex.Request.Length, ex.Request.Body = "PUT", 5, unreadable{exchangetest.Body("12345")}
				ex.Request.Continue = true
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				to := server()
				to.MaxRequests = 1
				s := newServers(t, settings, to)
				for range 3 {
					ex := exchangetest.New(t)
					ex.Front = &brokenFront{}
					equal(t, "answer", serveAll(ex, s), 200)
					ex = exchangetest.New(t, option)
					equal(t, "answer", serveAll(ex, s), 500)
					srv := s.List()[0]
					equal(t, "active", srv.live.Active(), 0)
					open := 0
					if m := srv.pool.multi; m != nil {
						m.mu.Lock()
						open = len(m.mu.conns)
						m.mu.Unlock()
					}
					if want := srv.pool.Idle(); open > 0 && want != open {
						t.Errorf("%d of %d connections are at rest", want, open)
					}
				}
			})
		}
	}
}

// serveAll takes ex through the source and returns the status.
func serveAll(ex *exchange.Exchange, source exchange.Source) int {
	p := &exchange.Pipeline{Source: source}
	p.Serve(ex)
	return ex.Response.Status
}

// hintsInHTTP2 answers every request with 103 and 200.
func hintsInHTTP2(c net.Conn) {
	c.Write(http2.AppendFrame(nil, 0, http2.FrameSettings, 0, 0))
	io.CopyN(io.Discard, c, int64(len(http2.Preface)))
	for head := make([]byte, http2.FrameHeaderSize); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		f := http2.ParseFrame(head)
		io.CopyN(io.Discard, c, int64(f.Length))
		if f.Type == http2.FrameHeaders {
			b := http2.AppendBlock(nil, f.Stream, 0, http2.AppendNamed(nil, nameStatus, "103"), false)
			c.Write(http2.AppendBlock(b, f.Stream, 0, http2.AppendNamed(nil, nameStatus, "200"), true))
		}
	}
}

// A dial that panics is over: others do not wait for it.
func TestADialThatPanicsIsOver(t *testing.T) {
	address := testhouse.Server(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	for _, alone := range []bool{false, true} {
		to := target(address, 1)
		to.Secure = &Secure{Name: "example.com", Unverified: true}
		s := newServers(t, settings, to)
		p := s.List()[0].pool
		p.multi.tls = nil
		p.names = nil // which a dial does not expect
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			p.open(exchangetest.New(t), alone)
		}()
		p.multi.mu.Lock()
		equal(t, "a dial is under way", p.multi.mu.dial != nil, false)
		equal(t, "dials for one request", p.multi.mu.alone, 0)
		p.multi.mu.Unlock()
	}
}

// nameStatus is an entry of the static table of HPACK whose name is :status.
const nameStatus = 8
