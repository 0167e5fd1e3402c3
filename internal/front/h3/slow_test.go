package h3_test

import (
	"io"
	"sync"
	"testing"

	"github.com/quic-go/quic-go/quicvarint"

	"headgate/internal/exchange"
)

// held is a body that comes when it is let go.
type held struct{ come chan string }

func (b *held) Read(p []byte) (int, error) {
	text, ok := <-b.come
	if !ok {
		return 0, io.EOF
	}
	return copy(p, text), nil
}
func (b *held) Ready() bool  { return len(b.come) > 0 }
func (b *held) Close() error { return nil }

// A head does not wait for the body, whether its length is known or not: the client of a
// stream of events that has none yet is to know that it stands.
func TestAHeadDoesNotWaitForItsBody(t *testing.T) {
	for _, length := range []int64{-1, 5} {
		body := &held{make(chan string, 1)}
		end := sync.OnceFunc(func() { close(body.come) })
		f := newFront(t, source(func(ex *exchange.Exchange) *exchange.Answer {
			ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, length, body
			return nil
		}), nil)
		t.Cleanup(end)
		c := f.dial()
		s := c.stream(frame(1, section(get...)), true)
		r := quicvarint.NewReader(s)
		kind, err := quicvarint.Read(r)
		if err != nil || kind != 1 {
			t.Fatalf("length %d: got a frame of type %d, %v, want the head", length, kind, err)
		}
		n, _ := quicvarint.Read(r)
		var rs reply
		section := make([]byte, n)
		io.ReadFull(r, section)
		rs.addSection(section)
		body.come <- "hello"
		end()
		if rest := c.await(s); rs.status != "200" || rest.body != "hello" || rest.err != nil {
			t.Errorf("length %d: got %+v and %+v", length, rs, rest)
		}
	}
}
