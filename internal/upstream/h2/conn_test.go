package h2

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
)

func TestGreetings(t *testing.T) {
	for name, c := range map[string]struct {
		greeting string
		cause    string
	}{
		"HTTP/1.1":     {"HTTP/1.1 400 Bad Request\r\n\r\n", "the server's first bytes are not HTTP/2"},
		"another":      {string(http2.AppendPing(nil, 0, []byte("12345678"))), "the server's first bytes are not HTTP/2"},
		"acknowledges": {string(http2.AppendFrame(nil, 0, http2.FrameSettings, http2.FlagAck, 0)), "the server's first bytes are not HTTP/2"},
		"odd settings": {string(raw(http2.FrameSettings, 0, 0, []byte("abc"))), "no multiple of 6"},
		"takes pushes": {string(raw(http2.FrameSettings, 0, 0, http2.AppendSetting(nil, http2.SettingEnablePush, 1))), "pushes"},
	} {
		_, _, err := tryMeet(t, Settings{}, func(s *rawServer) { s.send([]byte(c.greeting)) })
		if err == nil || !strings.Contains(err.Error(), c.cause) {
			t.Errorf("%s: %v, want %q", name, err, c.cause)
		}
	}
	if _, _, err := tryMeet(t, Settings{}, func(s *rawServer) { s.conn.Close() }); err == nil {
		t.Error("a server that closes: no error")
	}
}

// The server's bound on streams is kept, also when it changes.
func TestPlaces(t *testing.T) {
	freed := make(chan struct{}, 16)
	conn, server := meet(t, Settings{Freed: func() { freed <- struct{}{} }}, uint32(http2.SettingMaxConcurrentStreams), 2)
	for i, want := range []bool{true, true, false} {
		if got := conn.Reserve(); got != want {
			t.Errorf("place %d: %v", i, got)
		}
	}
	conn.Release()
	<-freed
	if !conn.Reserve() {
		t.Error("a place that was given back is not there")
	}
	server.send(join(raw(http2.FrameSettings, 0, 0, http2.AppendSetting(nil, http2.SettingMaxConcurrentStreams, 3)), http2.AppendPing(nil, 0, []byte("12345678"))))
	if f := server.next(); f.Type != http2.FramePing {
		t.Fatalf("got %+v", f)
	}
	select {
	case <-freed:
	case <-time.After(testhouse.Patience):
		t.Error("who waits for a place was not told of the bound that was raised")
	}
	if !conn.Reserve() || conn.Reserve() {
		t.Error("the bound did not change to 3")
	}
	conn.Retire()
	if conn.Usable() {
		t.Error("a retired connection is usable")
	}
	for range 3 {
		conn.Release()
	}
	<-conn.done
}

// A body larger than the window waits for the server, and the answer may come
// before its end.
func TestBodyWaitsForTheWindow(t *testing.T) {
	conn, server := meet(t, Settings{}, uint32(http2.SettingInitialWindowSize), 10)
	got := make(chan string, 1)
	go func() {
		f, text := server.next(), ""
		id := f.Stream
		for len(text) < 25 {
			f = server.next()
			text += string(f.payload)
			server.send(http2.AppendWindowUpdate(nil, id, 10))
		}
		got <- text
		server.send(join(server.head(id, false, ":status", "200"), data(id, "done", http2.FlagEndStream)))
	}()
	text := strings.Repeat("abcde", 5)
	front, _, err := request(t, conn, exchangetest.Head("POST", "/"), exchangetest.Chunks(text[:12], text[12:]))
	if err != nil || front.Body != "done" || <-got != text {
		t.Errorf("%v, %+v", err, front)
	}
}

// trailing is a body behind which trailers come, as fronts make them known.
type trailing struct {
	exchange.Body
	ex     *exchange.Exchange
	fields []string
}

func (b *trailing) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if err == io.EOF && b.ex.Request.Trailer.Len() == 0 {
		for _, name := range b.fields {
			b.ex.Request.Trailer.AddField(name, "client")
		}
	}
	return n, err
}

// over is a source that asks over a connection.
type over struct {
	t *testing.T
	c *Conn
}

func (o over) Describe() string { return "over" }

func (o over) Respond(ex *exchange.Exchange) *exchange.Answer {
	if !o.c.Reserve() {
		o.t.Error("no place")
	}
	if err := NewStream(ex, exchange.Now(), &nobody{}).Do(o.c, http2.AppendIndexed(nil, http2.MethodGet)); err != nil {
		return exchange.Fail(exchange.UpstreamReset, err.Error())
	}
	return nil
}

// The server gets no trailer, and the client none, that a filter owns; where none is
// left the body itself ends the message.
func TestOwnedTrailersDoNotPass(t *testing.T) {
	owns := func(f *header.Field) bool { return header.Twins(f.Name, "remote-user") }
	filter := exchange.Filter{Owned: &exchange.Owned{Request: owns, Response: owns}}
	for _, c := range []struct {
		sent []string
		want string
	}{
		{[]string{"remote-user", "x-sum", "remote_user"}, "x-sum: client"},
		{[]string{"remote_user"}, ""},
	} {
		conn, server := meet(t, Settings{})
		got := make(chan string, 1)
		go func() {
			id, text := server.next().Stream, ""
			for f := server.next(); ; f = server.next() {
				if f.Type == http2.FrameHeaders {
					hpack.NewDecoder(4096, func(h hpack.HeaderField) { text += h.Name + ": " + h.Value }).Write(f.payload)
				}
				if f.Flags&http2.FlagEndStream != 0 || f.Type == 0xff {
					break
				}
			}
			got <- text
			server.send(join(server.head(id, false, ":status", "200"), data(id, "done", 0), server.head(id, true, "remote-user", "server", "x-end", "1")))
		}()
		ex := exchangetest.New(t, exchangetest.Head("POST", "/"), exchangetest.Chunks("abc", "def"))
		ex.Request.Body = &trailing{ex.Request.Body, ex, c.sent}
		front := exchangetest.Run(t, ex, over{t, conn}, filter)
		if text := <-got; text != c.want {
			t.Errorf("%q: the server got the trailers %q, want %q", c.sent, text, c.want)
		}
		if answered := strings.Join(front.Trailer, "|"); answered != "x-end: 1" {
			t.Errorf("%q: the client got the trailers %q (%+v)", c.sent, answered, front)
		}
	}
}

// An answer without a body may have trailers also where the server says that its length is
// 0, as net/http does: fronts must look for them.
func TestTrailersOfAnEmptyAnswerPass(t *testing.T) {
	for kind, length := range map[string]int64{"application/grpc": -1, "application/grpc+proto": -1, "text/plain": -1} {
		conn, server := meet(t, Settings{})
		go func() {
			id := server.next().Stream
			server.send(join(server.head(id, false, ":status", "200", "content-type", kind, "content-length", "0"), server.head(id, true, "grpc-status", "5")))
		}()
		ex := exchangetest.New(t)
		conn.Reserve()
		s := NewStream(ex, exchange.Now(), &nobody{})
		if err := s.Do(conn, nil); err != nil {
			t.Fatal(err)
		}
		if ex.Response.Length != length {
			t.Errorf("%s: the length is %d, want %d", kind, ex.Response.Length, length)
		}
		if n, err := s.Read(make([]byte, 10)); n > 0 || err != io.EOF || ex.Response.Trailer.Len() != 1 {
			t.Errorf("%s: %d bytes, %v, trailers %v", kind, n, err, ex.Response.Trailer.All())
		}
		s.Close()
	}
}

// An answer that ends with its head and has the length 0 keeps it.
func TestAnEmptyAnswerKeepsItsLength(t *testing.T) {
	conn, server := meet(t, Settings{})
	go func() {
		id := server.next().Stream
		server.send(server.head(id, true, ":status", "200", "content-length", "0"))
	}()
	ex := exchangetest.New(t)
	conn.Reserve()
	s := NewStream(ex, exchange.Now(), &nobody{})
	if err := s.Do(conn, nil); err != nil {
		t.Fatal(err)
	}
	if ex.Response.Length != 0 {
		t.Errorf("the length is %d, want 0", ex.Response.Length)
	}
	s.Close()
}

// A server that answers before it has the body, and does not want the rest of it,
// has answered.
func TestEarlyAnswer(t *testing.T) {
	conn, server := meet(t, Settings{}, uint32(http2.SettingInitialWindowSize), 1)
	go func() {
		id := server.next().Stream
		server.send(join(server.head(id, false, ":status", "413"), data(id, "no", http2.FlagEndStream), http2.AppendRSTStream(nil, id, http2.NoError)))
	}()
	front, _, err := request(t, conn, exchangetest.Head("POST", "/"), exchangetest.Content(strings.Repeat("x", 100_000)), shared)
	if err != nil || front.Status != 413 || front.Body != "no" {
		t.Errorf("%v, %+v", err, front)
	}
}

// Trailers that come behind the end of an answer are none of it.
func TestNothingComesBehindTheEnd(t *testing.T) {
	conn, server := meet(t, Settings{}, uint32(http2.SettingInitialWindowSize), 1)
	reset := make(chan http2.Code, 1)
	go func() {
		id := server.next().Stream
		server.send(join(server.head(id, false, ":status", "413"), data(id, "no", 0), server.head(id, true, "x-end", "1"), server.head(id, true, "x-late", "2")))
		f := server.next()
		for f.Type != http2.FrameRSTStream && f.Type != 0xff {
			f = server.next()
		}
		if f.Type == 0xff {
			f.payload = number(0)
		}
		reset <- http2.Code(binary.BigEndian.Uint32(f.payload))
	}()
	front, _, err := request(t, conn, exchangetest.Head("POST", "/"), exchangetest.Content(strings.Repeat("x", 100_000)), shared)
	if err != nil || front.Body != "no" || strings.Join(front.Trailer, "|") != "x-end: 1" {
		t.Errorf("%v, %+v", err, front)
	}
	if code := <-reset; code != http2.StreamClosed {
		t.Errorf("the stream was reset with %s", code)
	}
}

// A request that the server did not look at is sent again with all of its body.
func TestBodyIsSentAgain(t *testing.T) {
	for name, option := range map[string]exchangetest.Option{
		"short":  exchangetest.Content("some text"),
		"pieces": exchangetest.Chunks("some", " ", "text"),
		"long":   exchangetest.Content(strings.Repeat("x", 60_000)),
	} {
		first, one := meet(t, Settings{})
		second, two := meet(t, Settings{})
		got := make(chan string, 1)
		go func() {
			id := one.next().Stream
			one.next()
			one.send(http2.AppendRSTStream(nil, id, http2.RefusedStream))
		}()
		go func() {
			id, text := two.next().Stream, ""
			for end := false; !end; {
				f := two.next()
				text += string(f.payload)
				end = f.Type == 0xff || f.Has(http2.FlagEndStream)
			}
			got <- text
			two.send(two.head(id, true, ":status", "200"))
		}()
		ex := exchangetest.New(t, exchangetest.Head("POST", "/"), option)
		first.Reserve()
		s := NewStream(ex, exchange.Now(), &nobody{})
		if err := s.Do(first, nil); !errors.Is(err, ErrUnprocessed) {
			t.Fatalf("%s: %v", name, err)
		}
		if !s.Repeatable() {
			t.Fatalf("%s: cannot be sent again", name)
		}
		second.Reserve()
		if err := s.Do(second, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := <-got; int64(len(text)) != ex.Received {
			t.Errorf("%s: %d bytes came, %d were received", name, len(text), ex.Received)
		}
		s.Close()
	}
}

// A client that leaves resets its stream.
func TestClientThatLeaves(t *testing.T) {
	conn, server := meet(t, Settings{})
	heard := make(chan frame, 1)
	go func() {
		server.next()
		heard <- server.next()
	}()
	ex := exchangetest.New(t)
	ex.Front.(*exchangetest.Front).Left = true
	conn.Reserve()
	s := NewStream(ex, exchange.Now(), &nobody{})
	err := s.Do(conn, nil)
	s.End()
	var known *exchange.Error
	if !errors.As(err, &known) || known.Reason != exchange.ClientClosed {
		t.Errorf("got %v", err)
	}
	if f := <-heard; f.Type != http2.FrameRSTStream {
		t.Errorf("the server hears %+v", f)
	}
}

func TestTimeouts(t *testing.T) {
	conn, server := meet(t, Settings{BodyIdle: 30 * time.Millisecond})
	go func() {
		server.next() // never answered
		server.next() // reset
		id := server.next().Stream
		server.send(join(server.head(id, false, ":status", "200"), data(id, "half", 0)))
	}()
	for _, want := range []string{"did not answer in time", "paused for too long"} {
		_, _, err := request(t, conn, func(ex *exchange.Exchange) { ex.Limits.RequestTimeout = 30 * time.Millisecond })
		var known *exchange.Error
		if !errors.As(err, &known) || known.Reason != exchange.UpstreamTimeout || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// shared makes the body of an exchange one that may be closed while it is read,
// as those of the fronts may.
func shared(ex *exchange.Exchange) { ex.Request.Body = &sharedBody{body: ex.Request.Body} }

type sharedBody struct {
	mu   sync.Mutex
	body exchange.Body
}

func (b *sharedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body.Read(p)
}

func (b *sharedBody) Ready() bool { return true }

func (b *sharedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body.Close()
}

// Interim responses are passed on, and 100 lets a body go that waits for it.
func TestInterimResponses(t *testing.T) {
	conn, server := meet(t, Settings{})
	go func() {
		id := server.next().Stream
		server.send(join(server.head(id, false, ":status", "103", "link", "</a>"), server.head(id, false, ":status", "100")))
		if f := server.next(); f.Type != http2.FrameData || string(f.payload) != "text" {
			t.Errorf("got %+v", f)
		}
		server.send(server.head(id, true, ":status", "200"))
	}()
	wait := func(ex *exchange.Exchange) { ex.Request.Continue = true }
	front, _, err := request(t, conn, exchangetest.Head("POST", "/"), exchangetest.Content("text"), wait)
	if err != nil || front.Status != 200 || len(front.Interim) != 1 || front.Interim[0] != 103 {
		t.Errorf("%v, %+v", err, front)
	}
}

// What came as a body goes out as one, also when it is empty and has ended before
// the request is sent: servers of gRPC wait for its end otherwise.
func TestAnEmptyBodyIsSentAsOne(t *testing.T) {
	for name, option := range map[string]exchangetest.Option{
		"that has ended": func(ex *exchange.Exchange) { ex.Request.Body, ex.Request.Length = &empty{ready: true}, -1 },
		"that ends late": func(ex *exchange.Exchange) { ex.Request.Body, ex.Request.Length = &empty{}, -1 },
	} {
		t.Run(name, func(t *testing.T) {
			conn, server := meet(t, Settings{})
			go func() {
				head := server.next()
				if head.Flags&http2.FlagEndStream != 0 {
					t.Error("the request ends with its head")
				} else if f := server.next(); f.Type != http2.FrameData || f.Length != 0 || f.Flags&http2.FlagEndStream == 0 {
					t.Errorf("got %+v behind the head, want an empty DATA that ends the request", f)
				}
				server.send(server.head(head.Stream, true, ":status", "200"))
			}()
			if _, _, err := request(t, conn, exchangetest.Head("POST", "/"), option); err != nil {
				t.Error(err)
			}
		})
	}
}

// empty is a body without a byte.
type empty struct{ ready bool }

func (e *empty) Read([]byte) (int, error) { return 0, io.EOF }
func (e *empty) Ready() bool              { return e.ready }
func (e *empty) Close() error             { return nil }

// A client need not wait to be asked for its body (RFC 9110, section 10.1.1): what
// is there is sent.
func TestABodyThatNobodyWaitsWithIsSent(t *testing.T) {
	for name, late := range map[string]int32{"at once": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			conn, server := meet(t, Settings{ContinueWait: time.Hour})
			go func() {
				id := server.next().Stream
				if f := server.next(); f.Type != http2.FrameData || string(f.payload) != "text" {
					t.Errorf("got %+v", f)
				}
				server.send(server.head(id, true, ":status", "200"))
			}()
			unasked := func(ex *exchange.Exchange) {
				ex.Request.Continue = true
				ex.Request.Body = &looked{Body: ex.Request.Body, late: late}
			}
			if front, _, err := request(t, conn, exchangetest.Head("POST", "/"), exchangetest.Content("text"), unasked); err != nil || front.Status != 200 {
				t.Errorf("%v, %+v", err, front)
			}
		})
	}
}

// looked is a body that is there when it was looked for so many times.
type looked struct {
	exchange.Body
	late int32
}

func (l *looked) Ready() bool { l.late--; return l.late < 0 }

// What is there of a body is passed on as it comes, also when a DATA frame comes in
// several pieces and the next one is not there yet.
func TestAFrameInPiecesIsPassedOnAsItComes(t *testing.T) {
	for large, piece := range map[int]int{100: 40, http2.MaxFrameSize: http2.MaxFrameSize} {
		c, server := meet(t, Settings{BodyIdle: patience})
		ex := exchangetest.New(t)
		c.Reserve()
		s := NewStream(ex, exchange.Now(), &nobody{})
		frame := data(1, strings.Repeat("x", large), 0)
		go func() {
			id := server.next().Stream
			server.send(join(server.head(id, false, ":status", "200"), frame[:http2.FrameHeaderSize+1]))
		}()
		if err := s.Do(c, http2.AppendIndexed(nil, http2.MethodGet)); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, large)
		for got, sent := 0, http2.FrameHeaderSize+1; got < large; {
			n, err := s.Read(p)
			if got += n; err != nil {
				t.Fatalf("%d bytes of %d came, then %v", got, large, err)
			}
			if next := min(sent+piece, len(frame)); got == sent-http2.FrameHeaderSize && next > sent {
				part := frame[sent:next]
				sent = next
				time.AfterFunc(5*time.Millisecond, func() { server.send(part) })
			}
		}
		s.Close()
	}
}

// breaking is a body that panics.
type breaking struct{}

func (breaking) Read([]byte) (int, error) { panic("a test broke it") }
func (breaking) Ready() bool              { return false }
func (breaking) Close() error             { return nil }

// A panic in the goroutine that sends a body ends its request and not the process.
func TestABrokenBodyEndsItsRequest(t *testing.T) {
	conn, server := meet(t, Settings{})
	go server.next()
	_, _, err := request(t, conn, exchangetest.Head("POST", "/"), func(ex *exchange.Exchange) {
		ex.Request.Length, ex.Request.Body = -1, breaking{}
	})
	if e := (*exchange.Error)(nil); !errors.As(err, &e) || e.Reason != exchange.Internal {
		t.Errorf("got %v, want the reason internal", err)
	}
	if !conn.Reserve() {
		t.Error("the connection takes no other request")
	}
	conn.Release()
}

// A panic in the goroutine that reads leaves the lock of the connection free: its requests
// end, and who looks for a connection finds that it is none any more.
func TestABrokenReaderEndsItsRequests(t *testing.T) {
	conn, server := meet(t, Settings{})
	go func() {
		f := server.next()
		conn.mu.Lock()
		conn.hpack = nil
		conn.mu.Unlock()
		server.send(server.head(f.Stream, true, ":status", "200"))
	}()
	done := make(chan error, 1)
	go func() {
		_, _, err := request(t, conn)
		conn.Usable()
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want that the connection was lost", err)
		}
	case <-time.After(patience):
		t.Fatal("the request does not end")
	}
	if conn.Usable() {
		t.Error("the connection takes requests")
	}
}
