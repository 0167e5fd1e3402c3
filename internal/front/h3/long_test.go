package h3_test

import (
	"strconv"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

// numbered is a body that is all different.
type numbered struct{ *strings.Reader }

func (numbered) Ready() bool  { return true }
func (numbered) Close() error { return nil }

// Long bodies come whole, also when more of them are under way than may have long pieces.
func TestLongBodiesComeWhole(t *testing.T) {
	var text strings.Builder
	for i := range 100_000 {
		text.WriteString(strconv.Itoa(i))
		text.WriteByte(' ')
	}
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		rs := &ex.Response
		rs.Status, rs.Length, rs.Body = 200, int64(text.Len()), numbered{strings.NewReader(text.String())}
		return nil
	}, nil)
	c := f.dial()
	head := frame(1, section(get...))
	replies := make(chan string)
	const requests = 80 // more than may have long pieces
	for range requests {
		s := c.stream(head, true)
		go func() {
			if s == nil {
				replies <- ""
				return
			}
			replies <- c.await(s).body
		}()
	}
	for range requests {
		if got := <-replies; got != text.String() {
			t.Errorf("got %d bytes of %d, or others", len(got), text.Len())
		}
	}
}
