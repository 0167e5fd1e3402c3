package upstream

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
	"headgate/internal/upstream/h2"
)

// status204 is an entry of the static table of HPACK (RFC 7541, appendix A).
const status204 = 9

// oneEach is a server that looks at one request of each connection, the first, and says
// so by GOAWAY before it answers.
type oneEach struct {
	address string
	opened  atomic.Int32
	ignored atomic.Int32 // requests that it did not look at
}

func newOneEach(t *testing.T) *oneEach {
	t.Helper()
	s := &oneEach{}
	s.address = testhouse.Server(t, s.serve)
	return s
}

func (s *oneEach) target() Target {
	to := target(s.address, 1)
	to.HTTP2 = true
	return to
}

// serve reads until the other side closes the connection. The answer has no body and
// comes when the request is whole.
func (s *oneEach) serve(c net.Conn) {
	s.opened.Add(1)
	c.Write(http2.AppendFrame(nil, 0, http2.FrameSettings, 0, 0))
	io.CopyN(io.Discard, c, int64(len(http2.Preface)))
	for head := make([]byte, http2.FrameHeaderSize); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		f := http2.ParseFrame(head)
		io.CopyN(io.Discard, c, int64(f.Length))
		if f.Type == http2.FrameHeaders && f.Stream > 1 {
			s.ignored.Add(1)
		}
		if f.Stream == 1 && f.Has(http2.FlagEndStream) && (f.Type == http2.FrameHeaders || f.Type == http2.FrameData) {
			b := http2.AppendGoAway(nil, 1, http2.NoError, "")
			c.Write(http2.AppendBlock(b, 1, 0, http2.AppendIndexed(nil, status204), true))
		}
	}
}

// A server that looks at nothing but the first request of each connection loses none,
// whatever the method and however many there are at once.
func TestServerThatTakesOneRequestPerConnectionLosesNone(t *testing.T) {
	server := newOneEach(t)
	s := newServers(t, settings, server.target())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				text := fmt.Sprint("request ", i, " ", j)
				option := []exchangetest.Option{exchangetest.Head("POST", "/"), exchangetest.Content(text)}
				if j%2 == 0 {
					option[1] = exchangetest.Chunks(text[:3], text[3:])
				}
				if j%5 == 0 {
					option = nil
				}
				ex := exchangetest.New(t, option...)
				if got := exchangetest.Run(t, ex, s); got.Status != 204 {
					t.Errorf("request %d %d: %d, want 204: %s", i, j, got.Status, ex.Cause)
					return
				}
			}
		})
	}
	all.Wait()
	if n := server.ignored.Load(); n == 0 {
		t.Error("no request met a GOAWAY")
	}
}

// A request that is about to be sent when a change retires its pool is sent.
func TestRequestOnARetiredPoolIsSent(t *testing.T) {
	server := newH2C(t, echoes)
	s := newServers(t, settings, server.target())
	s.list[0].pool.Retire()
	ex := exchangetest.New(t, exchangetest.Head("POST", "/"), exchangetest.Content("abc"))
	if got := exchangetest.Run(t, ex, s); got.Status != 200 || got.Body != "abc" {
		t.Errorf("%d %q, want 200 abc: %s", got.Status, got.Body, ex.Cause)
	}
	equal(t, "connections", server.opened(), 1)
}

// Nobody else begins on a connection that was opened for one request, until that one
// has.
func TestConnectionForOneRequestIsNotSharedBeforeItBegan(t *testing.T) {
	server := newH2C(t, echoes)
	s := newServers(t, settings, server.target())
	pool := s.list[0].pool
	own, err := pool.open(exchangetest.New(t), true)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pool.open(exchangetest.New(t), false)
	if err != nil {
		t.Fatal(err)
	}
	if own.multi == other.multi {
		t.Error("another request has a place on the connection")
	}
	other.multi.Retire()
	other.multi.Release()
	ex := exchangetest.New(t)
	stream := h2.NewStream(ex, exchange.Now(), s.list[0])
	if err := stream.Do(own.multi, AppendBlock(nil, ex, s.list[0], s.host, false)); err != nil {
		t.Fatal(err)
	}
	if o, err := pool.open(exchangetest.New(t), false); err != nil || o.multi != own.multi {
		t.Errorf("got %+v, %v, want the connection on which a request has begun", o, err)
	} else {
		o.multi.Release()
	}
	stream.Close()
}
