package cache

import (
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// TestPartBesideItsWhole leaves alone what came whole while a part was asked for.
func TestPartBesideItsWhole(t *testing.T) {
	const head = `|Cache-Control: max-age=60|ETag: "a"`
	for _, tag := range []string{`"a"`, `"b"`} {
		s := newStage(t, settings())
		asked, answered := make(chan struct{}), make(chan struct{})
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			close(asked)
			<-answered
			return answer("206|Content-Range: bytes 0-1/5|Cache-Control: max-age=60|ETag: "+tag+"||wh", s.clock)(ex)
		}
		done := make(chan *exchangetest.Front)
		go func() { done <- s.request("GET /|Range: bytes=0-1") }()
		<-asked
		s.origin.mu.Lock()
		s.origin.reply = answer("200"+head+"||whole", s.clock)
		s.origin.mu.Unlock()
		s.request("GET /")
		close(answered)
		if f := <-done; f.Status != 206 || f.Body != "wh" {
			t.Errorf("got %d %q", f.Status, f.Body)
		}
		want := 2
		if tag == `"b"` {
			want = 3 // the server has told of something newer
		}
		if f := s.request("GET /"); f.Body != "whole" || s.origin.count() != want {
			t.Errorf("%s: got %q, asked %d times, want %d", tag, f.Body, s.origin.count(), want)
		}
	}
}
