package cache

import (
	"testing"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

// fragile is a body that panics when all that it has was read.
type fragile struct {
	*pieces
	hasty bool // it is ready to
}

func (f fragile) Ready() bool { return f.hasty || f.pieces.Ready() }

func (f fragile) Read(p []byte) (int, error) {
	n, err := f.pieces.Read(p)
	if err != nil {
		panic(err)
	}
	return n, err
}

// TestPanicWhileABodyComes ends the body for all who read it, also when nobody does: the
// process goes on, and the next client gets an answer.
func TestPanicWhileABodyComes(t *testing.T) {
	begin := func(t *testing.T, hasty bool) (*stage, *pieces) {
		s := newStage(t, settings())
		p := s.streamed("200|Cache-Control: max-age=60")
		reply := s.origin.reply
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			a := reply(ex)
			ex.Response.Body = fragile{p, hasty}
			return a
		}
		return s, p
	}
	after := func(t *testing.T, s *stage) {
		s.origin.mu.Lock()
		s.origin.reply = answer("200|Cache-Control: max-age=60||whole", s.clock)
		s.origin.mu.Unlock()
		if f := s.request("GET /"); f.Body != "whole" {
			t.Errorf("the next client got %d %q", f.Status, f.Body)
		}
		if n := s.cache.store.entries.Load(); n != 1 {
			t.Errorf("%d entries hold memory, want 1", n)
		}
	}

	t.Run("with two clients", func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		s, p := begin(t, false)
		p.come <- "x"
		done := make(chan *exchangetest.Front)
		for range 2 {
			go func() { done <- s.request("GET /") }()
		}
		testhouse.Eventually(t, "both read", func() bool {
			b := s.coming()
			if b == nil {
				return false
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.mu.readers) == 2 && b.mu.pumping && b.mu.wake != nil
		})
		close(p.come)
		for range 2 {
			<-done
		}
		<-p.closed
		after(t, s)
	})

	t.Run("with none", func(t *testing.T) {
		s, p := begin(t, false)
		first := s.open("GET /")
		p.come <- "x"
		readN(t, first, 1)
		first.Response.Body.Close()
		close(p.come)
		<-p.closed
		testhouse.Eventually(t, "the entry is given up", func() bool { return s.cache.store.entries.Load() == 0 })
		after(t, s)
	})

	t.Run("before the head is sent", func(t *testing.T) {
		s, p := begin(t, true)
		p.come <- "x"
		close(p.come)
		if f := s.request("GET /"); f.Status != 500 {
			t.Errorf("got %d, want 500", f.Status)
		}
		<-p.closed
		after(t, s)
	})
}

// coming returns the body of the only entry, nil if there is none.
func (s *stage) coming() (b *body) {
	for i := range s.cache.store.shards {
		sh := &s.cache.store.shards[i]
		sh.mu.Lock()
		for _, e := range sh.mu.entries {
			b = e.body
		}
		sh.mu.Unlock()
	}
	return b
}
