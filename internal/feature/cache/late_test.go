package cache

import (
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// TestMadeStaleWhileItIsFetched does not store as fresh what was asked for before a soft
// purge: it may be what the purge was about.
func TestMadeStaleWhileItIsFetched(t *testing.T) {
	for _, p := range []Purge{{URL: "http://example.com/", Soft: true}, {All: true, Soft: true}} {
		s := newStage(t, settings())
		store := Store{store: s.cache.store}
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			store.Purge(p)
			return answer("200|Cache-Control: max-age=60||old", s.clock)(ex)
		}
		s.request("GET /")
		s.origin.reply = answer("200|Cache-Control: max-age=60||new", s.clock)
		if f := s.request("GET /"); f.Body != "new" {
			t.Errorf("%+v: got %q", p, f.Body)
		}
	}
}

// TestLateValidation: a 304 about what was replaced meanwhile changes nothing of what took
// its place, whether a GET or a HEAD asked.
func TestLateValidation(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		s := newStage(t, settings())
		s.origin.reply = answer(`200|Cache-Control: no-cache|ETag: "a"||old`, s.clock)
		s.request("GET /")
		asked, answered := make(chan struct{}), make(chan struct{})
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			close(asked)
			<-answered
			if method == "HEAD" {
				return answer(`200|Cache-Control: max-age=60|ETag: "a"||old`, s.clock)(ex)
			}
			return answer(`304|Cache-Control: max-age=60|ETag: "a"||`, s.clock)(ex)
		}
		done := make(chan *exchangetest.Front)
		go func() { done <- s.request(method + " /") }()
		<-asked
		s.origin.mu.Lock()
		s.origin.reply = answer(`200|Cache-Control: max-age=60|ETag: "b"||new`, s.clock)
		s.origin.mu.Unlock()
		s.request("GET /")
		close(answered)
		if f := <-done; f.Status != 200 || f.Field("ETag") != `"a"` {
			t.Errorf("%s: got %d %q", method, f.Status, f.Fields)
		}
		if f := s.request("GET /"); f.Body != "new" || s.origin.count() != 3 {
			t.Errorf("after %s: got %q, asked %d times", method, f.Body, s.origin.count())
		}
	}
}

// TestSweptBeforeItIsLinked is what may come between a look and the index.
func TestSweptBeforeItIsLinked(t *testing.T) {
	for _, how := range []sweep{takeOut, makeStale} {
		s := newStage(t, settings())
		s.origin.reply = answer(`200|Cache-Control: no-cache|ETag: "a"||old`, s.clock)
		ex := s.open("GET /")
		h := hits.Get(ex)
		begun := s.cache.store.sweeps.Load()
		s.cache.store.drop(func(*entry) bool { return true }, how)
		if _, body := s.cache.store.link(h, nil, h.e, begun); body != late {
			t.Errorf("put in what was asked for before")
		}
		ex.Response.Body.Close()
	}
}
