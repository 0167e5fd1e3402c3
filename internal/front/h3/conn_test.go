package h3_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	"headgate/internal/exchange"
	"headgate/internal/front/h3"
	"headgate/internal/testhouse"
)

func TestWhatBreaksARuleEndsTheConnection(t *testing.T) {
	f := newFront(t, text("x"), nil)
	settings := append([]byte{0}, frame(4, nil)...)
	pair := func(id, value uint64) []byte { return quicvarint.Append(quicvarint.Append(nil, id), value) }
	control := func(parts ...[]byte) func(*raw) { return func(c *raw) { c.uni(slices.Concat(parts...)) } }
	request := func(parts ...[]byte) func(*raw) { return func(c *raw) { c.stream(slices.Concat(parts...), true) } }
	head := frame(1, section(get...))
	for name, tt := range map[string]struct {
		do   func(*raw)
		code uint64
	}{
		"no SETTINGS":                         {control([]byte{0}, frame(7, []byte{0})), codeMissing},
		"SETTINGS twice":                      {control(settings, frame(4, nil)), codeUnexpected},
		"a setting twice":                     {control([]byte{0}, frame(4, append(pair(6, 1), pair(6, 1)...))), codeSettings},
		"a setting of HTTP/2":                 {control([]byte{0}, frame(4, pair(2, 1))), codeSettings},
		"a setting that is not whole":         {control([]byte{0}, frame(4, []byte{6})), codeFrame},
		"DATA on the control stream":          {control(settings, frame(0, nil)), codeUnexpected},
		"a frame of HTTP/2":                   {control(settings, frame(6, nil)), codeUnexpected},
		"a second control stream":             {func(c *raw) { c.uni(settings); c.uni(settings) }, codeCreation},
		"a push stream":                       {control([]byte{1}), codeCreation},
		"the control stream closed":           {func(c *raw) { c.uni(settings).Close() }, codeCritical},
		"the control stream reset":            {func(c *raw) { s := c.uni(settings); c.apart(func() { s.CancelWrite(0) }) }, codeCritical},
		"CANCEL_PUSH":                         {control(settings, frame(3, []byte{0})), codeID},
		"MAX_PUSH_ID falls":                   {control(settings, frame(13, []byte{5}), frame(13, []byte{4})), codeID},
		"GOAWAY rises":                        {control(settings, frame(7, []byte{4}), frame(7, []byte{8})), codeID},
		"our control stream stopped":          {func(c *raw) { c.stopControl() }, codeCritical},
		"PRIORITY_UPDATE of nothing":          {control(settings, frame(0xf0700, nil)), codeFrame},
		"PRIORITY_UPDATE of a stream of ours": {control(settings, frame(0xf0700, []byte{3, 'u', '=', '1'})), codeID},
		"PRIORITY_UPDATE beyond the bound":    {control(settings, frame(0xf0700, append(quicvarint.Append(nil, 4*1000), "u=1"...))), codeID},
		"PRIORITY_UPDATE of a push":           {control(settings, frame(0xf0701, []byte{0, 'u', '=', '1'})), codeID},
		"PRIORITY_UPDATE in a request":        {request(head, frame(0xf0700, []byte{0})), codeUnexpected},
		"a dynamic table":                     {control([]byte{2, 0x3f, 0xe1, 0x1f}), codeEncoder},
		"an insertion":                        {control([]byte{2, 0xc0, 1, 'a'}), codeEncoder},
		"an acknowledgement":                  {control([]byte{3, 0x84}), codeDecoder},
		"DATA before the head":                {request(frame(0, []byte("x"))), codeUnexpected},
		"SETTINGS in a request":               {request(frame(4, nil)), codeUnexpected},
		"a push promise":                      {request(head, frame(5, []byte{0})), codeUnexpected},
		"a truncated head":                    {request(head[:len(head)-1]), codeFrame},
		"a dynamic reference":                 {request(frame(1, []byte{0, 0, 0x80})), codeDecompression},
		"a required insert count":             {request(frame(1, []byte{2, 0, 0xc1})), codeDecompression},
		"an index beyond the table":           {request(frame(1, []byte{0, 0, 0xff, 99})), codeDecompression},
		"a section that is not whole":         {request(frame(1, []byte{0, 0, 0x51})), codeDecompression},
	} {
		t.Run(name, func(t *testing.T) {
			c := f.dial()
			c.t = t
			tt.do(c)
			if got := c.ended(); got != tt.code {
				t.Errorf("got %#x, want %#x", got, tt.code)
			}
		})
	}
	c := f.dial()
	c.uni([]byte{0x21, 1, 2, 3}) // a stream of an unknown type is given up
	c.uni(slices.Concat(settings, frame(0x21, make([]byte, 5000)), frame(0xf0700, []byte{0, 'u', '=', '1'})))
	c.uni([]byte{2, 0x20})
	c.uni([]byte{3, 0x44})
	if rs := c.await(c.stream(head, true)); rs.status != "200" {
		t.Errorf("what is allowed: got %+v", rs)
	}
	if rs := c.await(c.stream(nil, true)); rs.reset() != codeIncomplete {
		t.Errorf("an empty stream: got %+v", rs)
	}
}

func TestFloodsEndTheConnection(t *testing.T) {
	release := make(chan struct{})
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		for !ex.Front.Gone() {
			select {
			case <-release:
				return text("x")(ex)
			case <-time.After(time.Millisecond):
			}
		}
		return exchange.Fail(exchange.ClientClosed, "gone")
	}, func(p *exchange.Port) { p.Streams = 10 })
	defer close(release)
	c := f.dial()
	for range 10 {
		c.stream(frame(1, section(get...)), true)
	}
	if _, err := c.conn.OpenStream(); err == nil {
		t.Error("there are more streams than the bound")
	}
	c = f.dial()
	malformed := frame(1, section("x", "y"))
	for range 2000 {
		s, err := c.conn.OpenStreamSync(t.Context())
		if err != nil {
			break
		}
		s.Write(malformed)
		s.Close()
		s.CancelRead(0)
	}
	if got := c.ended(); got != codeLoad {
		t.Errorf("a flood of malformed requests: got %#x", got)
	}
	c = f.dial()
	frames := append([]byte{0}, frame(4, nil)...)
	for range 1000 {
		frames = append(frames, frame(0x21, nil)...)
	}
	c.uni(frames)
	if got := c.ended(); got != codeLoad {
		t.Errorf("a flood of frames: got %#x", got)
	}
}

// Each way to make us work for nothing ends the connection. What a client sends of
// use, however small, does not.
func TestFramesOfNoUseAreCharged(t *testing.T) {
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Body != nil {
			io.Copy(io.Discard, ex.Request.Body)
		}
		return text("x")(ex)
	}, nil)
	begin := quicvarint.Append(quicvarint.Append(nil, 0x21), 1<<60)
	settings := append([]byte{0}, frame(4, nil)...)
	post := frame(1, section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/"))
	endless := func(c *raw, s io.Writer) {
		for piece := make([]byte, 64<<10); c.conn.Context().Err() == nil; {
			if _, err := s.Write(piece); err != nil {
				return
			}
		}
	}
	for name, flood := range map[string]func(*raw){
		"streams without a type": func(c *raw) {
			for c.conn.Context().Err() == nil {
				s, err := c.conn.OpenUniStreamSync(c.conn.Context())
				if err != nil {
					return
				}
				s.Write([]byte{0x40})
				s.CancelWrite(0)
			}
		},
		"a frame without end on the control stream": func(c *raw) { endless(c, c.uni(append(settings, begin...))) },
		"a frame without end before a head":         func(c *raw) { endless(c, c.stream(begin, false)) },
		"a frame without end in a body":             func(c *raw) { endless(c, c.stream(append(slices.Clip(post), begin...), false)) },
		"DATA of a byte": func(c *raw) {
			s := c.stream(post, false)
			for piece := bytes.Repeat(frame(0, []byte("x")), 10_000); c.conn.Context().Err() == nil; {
				if _, err := s.Write(piece); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := f.dial()
			c.t = t
			flood(c)
			if got := c.ended(); got != codeLoad {
				t.Errorf("got %#x, want H3_EXCESSIVE_LOAD", got)
			}
		})
	}
	c := f.dial()
	s := c.stream(append(slices.Clip(post), bytes.Repeat(frame(0, []byte("12345")), 50_000)...), true)
	if rs := c.await(s); rs.status != "200" {
		t.Errorf("messages of five bytes: got %+v", rs)
	}
	s = c.stream(append(slices.Clip(post), bytes.Repeat(frame(0, []byte("1")), 4_000)...), true)
	if rs := c.await(s); rs.status != "200" {
		t.Errorf("a short body byte by byte: got %+v", rs)
	}
}

// A body where Content-Length says that there is none makes a request malformed (RFC
// 9114, section 4.1.2), and no server sees it.
func TestContentLengthOfNothingWithDATA(t *testing.T) {
	f := newFront(t, func(*exchange.Exchange) *exchange.Answer {
		t.Error("the request was served")
		return exchange.Fail(exchange.BadRequest, "served")
	}, nil)
	for _, method := range []string{"GET", "POST"} {
		head := frame(1, section(":method", method, ":scheme", "https", ":authority", "h", ":path", "/", "content-length", "0"))
		c := f.dial()
		s := c.stream(head, false)
		c.apart(func() { s.Write(frame(0, []byte("x"))) })
		if rs := c.await(s); rs.reset() != codeMessage {
			t.Errorf("%s: got %+v, want H3_MESSAGE_ERROR", method, rs)
		}
		if e := f.logged(); e.reason != exchange.BadRequest || e.ex.method != method {
			t.Errorf("%s: logged %+v", method, e)
		}
	}
	f = newFront(t, text("x"), nil)
	head := frame(1, section(":method", "POST", ":scheme", "https", ":authority", "h", ":path", "/", "content-length", "0"))
	c := f.dial()
	for _, rest := range [][]byte{nil, frame(0, nil)} {
		if rs := c.await(c.stream(slices.Concat(head, rest), true)); rs.status != "200" {
			t.Errorf("an empty body: got %+v", rs)
		}
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	f := newFront(t, text("x"), func(p *exchange.Port) { p.KeepAlive = 50 * time.Millisecond })
	c := f.dial()
	if rs := c.await(c.stream(frame(1, section(get...)), true)); rs.status != "200" {
		t.Errorf("got %+v", rs)
	}
	if got := c.ended(); got != codeNone {
		t.Errorf("got %#x, want H3_NO_ERROR", got)
	}
}

func TestWithoutKeepAliveAConnectionHasOneRequest(t *testing.T) {
	f := newFront(t, text("x"), func(p *exchange.Port) { p.KeepAlive = 0 })
	c := f.dial()
	c.apart(func() {})
	if rs := c.await(c.stream(frame(1, section(get...)), true)); rs.status != "200" {
		t.Errorf("got %+v", rs)
	}
	if got := c.ended(); got != codeNone {
		t.Errorf("got %#x, want H3_NO_ERROR", got)
	}
}

func TestAClientThatTakesNoControlStreamIsRefused(t *testing.T) {
	f := newFront(t, text("x"), nil)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	qc, err := quic.DialAddr(ctx, f.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, &quic.Config{MaxIncomingUniStreams: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := (&raw{t, qc}).ended(); got != codeCreation {
		t.Errorf("got %#x, want H3_STREAM_CREATION_ERROR", got)
	}
}

func TestAClientThatLeavesIsNoticed(t *testing.T) {
	left := make(chan bool, 1)
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		until := time.Now().Add(patience)
		for !ex.Front.Gone() && time.Now().Before(until) {
			time.Sleep(time.Millisecond)
		}
		left <- ex.Front.Gone()
		return exchange.Fail(exchange.ClientClosed, "gone")
	}, nil)
	for name, leave := range map[string]func(*raw){
		"by a reset": func(c *raw) { c.stream(frame(1, section(get...)), true).CancelRead(0x10c) },
		"for good": func(c *raw) {
			c.stream(frame(1, section(get...)), true)
			c.apart(func() { c.conn.CloseWithError(0x100, "") })
		},
	} {
		leave(f.dial())
		if !<-left {
			t.Errorf("%s: it was not noticed", name)
		}
	}
}

// A goroutine that panics outside of an exchange, in a stream or where streams are taken,
// ends its connection and no other.
func TestABrokenInvariantEndsOneConnection(t *testing.T) {
	for _, where := range []string{"a stream", "the reader"} {
		t.Run(where, func(t *testing.T) {
			var log testhouse.Log
			var broken atomic.Bool
			f := newFront(t, text("hello"), func(port *exchange.Port) {
				serve := port.Serve
				port.Serve = func(ex *exchange.Exchange) {
					if ex.Request.Path == "/broken" {
						panic("a test broke it")
					}
					serve(ex)
				}
			}, func(speak *h3.Front) {
				speak.Log = slog.New(slog.NewTextHandler(&log, nil))
				port := speak.Port
				speak.Port = func() *exchange.Port {
					if broken.Load() {
						panic("a test broke it")
					}
					return port()
				}
			})
			other, c := f.dial(), f.dial()
			if rs := other.await(other.stream(frame(1, section(get...)), true)); string(rs.body) != "hello" {
				t.Fatalf("got %+v", rs)
			}
			path := "/broken"
			if where == "the reader" {
				if rs := c.await(c.stream(frame(1, section(get...)), true)); string(rs.body) != "hello" {
					t.Fatalf("got %+v", rs)
				}
				broken.Store(true)
				path = "/"
			}
			c.stream(frame(1, section(":method", "GET", ":scheme", "https", ":authority", "h", ":path", path)), true)
			if code := c.ended(); code != 0x102 {
				t.Errorf("it ended with %#x, want H3_INTERNAL_ERROR", code)
			}
			broken.Store(false)
			if text := log.String(); !strings.Contains(text, "broken invariant") || !strings.Contains(text, "HTTP/3 connection") {
				t.Errorf("the log says %q", text)
			}
			if rs := other.await(other.stream(frame(1, section(get...)), true)); string(rs.body) != "hello" {
				t.Errorf("the other connection got %+v", rs)
			}
		})
	}
}
