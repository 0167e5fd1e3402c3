package cache

import (
	"errors"
	"io"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

// TestValidatedWhileItsBodyComes lets a 304 arrive for a response whose body is still on
// its way: what the index has then ends as the body does.
func TestValidatedWhileItsBodyComes(t *testing.T) {
	const head = "200|Cache-Control: no-cache|ETag: \"a\""
	body := strings.Repeat("x", 1000)
	begin := func(t *testing.T) (*stage, *pieces, *exchange.Exchange, *exchange.Exchange) {
		s := newStage(t, settings())
		p := s.streamed(head)
		first := s.open("GET /")
		p.come <- body
		readN(t, first, len(body))
		s.origin.reply = answer("304|Cache-Control: no-cache|ETag: \"a\"||", s.clock)
		second := s.open("GET /")
		if got := readN(t, second, len(body)); got != body {
			t.Fatalf("the second client got %q", got)
		}
		return s, p, first, second
	}

	t.Run("and ends early", func(t *testing.T) {
		s, p, first, second := begin(t)
		p.broken = errors.New("the server left")
		close(p.come)
		for _, ex := range []*exchange.Exchange{first, second} {
			if _, err := io.ReadAll(ex.Response.Body); err == nil {
				t.Error("a client took the part for the whole")
			}
			ex.Response.Body.Close()
		}
		if n := s.linked(); n != 0 {
			t.Errorf("the index has %d entries without a whole body", n)
		}
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			if strings.Contains(s.origin.last(), "If-None-Match") {
				return answer("304|ETag: \"a\"||", s.clock)(ex)
			}
			return answer(head+"||"+body, s.clock)(ex)
		}
		if f := s.request("GET /"); f.Status != 200 || f.Body != body {
			t.Errorf("the next client got %d, %d bytes", f.Status, len(f.Body))
		}
	})

	t.Run("and is whole", func(t *testing.T) {
		s, p, first, second := begin(t)
		close(p.come)
		for _, ex := range []*exchange.Exchange{first, second} {
			if _, err := io.ReadAll(ex.Response.Body); err != nil {
				t.Error(err)
			}
			ex.Response.Body.Close()
		}
		q := &s.cache.store.queue
		q.mu.Lock()
		queued := q.mu.small.entries + q.mu.main.entries
		q.mu.Unlock()
		if n := s.linked(); n != 1 || queued != 1 {
			t.Errorf("the index has %d entries, of which %d can give way, want 1 and 1", n, queued)
		}
	})
}

// TestValidatedAfterItsBodyWasLost lets the 304 come after the body ended early.
func TestValidatedAfterItsBodyWasLost(t *testing.T) {
	s := newStage(t, settings())
	p := s.streamed("200|Cache-Control: no-cache|ETag: \"a\"")
	first := s.open("GET /")
	p.come <- "x"
	readN(t, first, 1)
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if !strings.Contains(s.origin.last(), "If-None-Match") {
			return answer("200|Cache-Control: no-cache|ETag: \"a\"||whole", s.clock)(ex)
		}
		p.broken = errors.New("the server left")
		close(p.come)
		if _, err := io.ReadAll(first.Response.Body); err == nil {
			t.Error("the first client took the part for the whole")
		}
		first.Response.Body.Close()
		return answer("304|ETag: \"a\"||", s.clock)(ex)
	}
	if f := s.request("GET /"); f.Status != 200 || f.Body != "whole" {
		t.Errorf("got %d %q, want the whole", f.Status, f.Body)
	}
	s.origin.reply = answer("304|ETag: \"a\"||", s.clock)
	if f := s.request("GET /"); f.Status != 200 || f.Body != "whole" {
		t.Errorf("then got %d %q, want the whole", f.Status, f.Body)
	}
}

// linked returns how many entries the index has.
func (s *stage) linked() (n int) {
	for i := range s.cache.store.shards {
		sh := &s.cache.store.shards[i]
		sh.mu.Lock()
		for _, e := range sh.mu.entries {
			for ; e != nil; e = e.next {
				n++
			}
		}
		sh.mu.Unlock()
	}
	return n
}
