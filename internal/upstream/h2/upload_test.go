package h2

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
)

// fast is a body that has a piece at once, and the rest of it when the test says so.
type fast struct {
	text  string
	first int           // the length of the first piece
	rest  chan struct{} // closed: the rest may be read
	taken chan struct{} // closed by the piece for which a tape has no room
	err   error         // what comes in place of the rest
	read  int
}

func (f *fast) Read(p []byte) (int, error) {
	if f.read == 0 {
		p = p[:min(f.first, len(p))]
	} else {
		<-f.rest
	}
	if f.err != nil && f.read > 0 {
		return 0, f.err
	}
	n := copy(p, f.text[f.read:])
	if f.read <= maxTape && f.read+n > maxTape {
		close(f.taken)
	}
	if f.read += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *fast) Ready() bool  { return false }
func (f *fast) Close() error { return nil }

// refused returns a stream that a server did not look at, and whose body goes on.
func refused(t *testing.T, body *fast) (*Stream, *exchange.Exchange) {
	t.Helper()
	conn, server := meet(t, Settings{})
	go func() {
		id := server.next().Stream
		server.next()
		server.send(http2.AppendRSTStream(nil, id, http2.RefusedStream))
	}()
	ex := exchangetest.New(t, exchangetest.Head("POST", "/"))
	ex.Request.Body, ex.Request.Length = body, -1
	conn.Reserve()
	s := NewStream(ex, exchange.Now(), &nobody{})
	if err := s.Do(conn, nil); !errors.Is(err, ErrUnprocessed) {
		t.Fatalf("got %v, want %v", err, ErrUnprocessed)
	}
	if !s.Repeatable() {
		t.Fatal("it cannot be sent again")
	}
	return s, ex
}

// yield lets the upload run on, as far as it goes.
func yield() {
	for range 1000 {
		runtime.Gosched()
	}
}

// A body that is to be sent again is not read beyond what is kept of it: its first bytes
// would be gone, and the server take the rest, or nothing, for all of it.
func TestABodyToBeSentAgainStaysWhole(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 100<<10/16)
	body := &fast{text: text, first: 1000, rest: make(chan struct{}), taken: make(chan struct{})}
	s, ex := refused(t, body)
	close(body.rest)
	<-body.taken
	yield()
	conn, server := meet(t, Settings{}, uint32(http2.SettingInitialWindowSize), 1<<20)
	server.send(http2.AppendWindowUpdate(nil, 0, 1<<20))
	got := make(chan string, 1)
	go func() {
		id, text := server.next().Stream, ""
		for end := false; !end; {
			f := server.next()
			text += string(f.payload)
			end = f.Type == 0xff || f.Has(http2.FlagEndStream)
		}
		got <- text
		server.send(server.head(id, true, ":status", "200"))
	}()
	conn.Reserve()
	if err := s.Do(conn, nil); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != body.text {
		t.Errorf("the server got %d bytes, the client sent %d", len(text), ex.Received)
	}
	s.Close()
}

// A body that waits to be sent again, and is not, is given up.
func TestABodyThatIsNotSentAgainIsGivenUp(t *testing.T) {
	body := &fast{text: strings.Repeat("x", 100<<10), first: 1000, rest: make(chan struct{}), taken: make(chan struct{})}
	s, _ := refused(t, body)
	close(body.rest)
	<-body.taken
	yield()
	s.End()
}

// A client that leaves before its request is sent again is not waited for.
func TestABodyThatBreaksOffIsNotSentAgain(t *testing.T) {
	body := &fast{first: 1000, text: strings.Repeat("x", 2000), rest: make(chan struct{}), err: io.ErrUnexpectedEOF}
	s, _ := refused(t, body)
	close(body.rest)
	<-s.up.done
	conn, _ := meet(t, Settings{})
	conn.Reserve()
	err := s.Do(conn, nil)
	if e := (*exchange.Error)(nil); !errors.As(err, &e) || e.Reason != exchange.ClientClosed {
		t.Errorf("got %v, want the reason %v", err, exchange.ClientClosed)
	}
	if !conn.Idle() {
		t.Error("the connection is not free")
	}
	s.End()
}

// What was read ahead is sent once, by who comes first: the upload, or a new try that
// overtakes it.
func TestWhatWasReadAheadIsSentOnce(t *testing.T) {
	conn, _ := meet(t, Settings{})
	ex := exchangetest.New(t, exchangetest.Head("POST", "/"), exchangetest.Content("some text"))
	conn.Reserve()
	s := NewStream(ex, exchange.Now(), &nobody{})
	s.reset(conn)
	s.readAhead()
	if _, _, err := s.open(nil); err != nil {
		t.Fatal(err)
	}
	conn.mu.Lock()
	before := len(conn.mu.Out)
	conn.mu.Unlock()
	u := &upload{done: make(chan struct{})}
	u.news.L = &u.mu
	s.local = false
	u.mu.Lock()
	u.resume(s, 0)
	u.mu.Unlock()
	s.local = false
	u.sendReadAhead(s, 0)
	conn.mu.Lock()
	out := string(conn.mu.Out[before:])
	conn.mu.Unlock()
	if n := strings.Count(out, "some text"); n != 1 {
		t.Errorf("it was sent %d times: %q", n, out)
	}
	s.End()
}
