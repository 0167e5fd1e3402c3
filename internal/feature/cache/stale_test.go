package cache

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// TestWaitersGetWhatIsStale asks servers that fail once for all who wait, answers all with
// what is stale, and holds no memory for them afterwards.
func TestWaitersGetWhatIsStale(t *testing.T) {
	for _, reply := range []string{"down", "503||later"} {
		t.Run(reply, func(t *testing.T) { waitForStale(t, reply) })
	}
}

func waitForStale(t *testing.T, reply string) {
	s := newStage(t, settings())
	s.origin.reply = answer("200|Cache-Control: max-age=5, stale-if-error=60||one", s.clock)
	s.request("GET /")
	s.wait(10)
	failed := make(chan struct{})
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		<-failed
		return answer(reply, s.clock)(ex)
	}
	const clients = 10
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if f, ex := s.exchange("GET /"); f.Body != "one" || ex.Cache.Use != exchange.CacheStale {
				t.Errorf("got %d %q, %v", f.Status, f.Body, ex.Cache.Use)
			}
		})
	}
	testhouse.Eventually(t, "all wait for one request", func() bool { return s.waiting() == clients-1 })
	close(failed)
	wg.Wait()
	if s.origin.count() != 2 {
		t.Errorf("asked %d times, want 2", s.origin.count())
	}
	Store{store: s.cache.store}.Purge(Purge{All: true})
	if n := s.cache.store.entries.Load(); n != 0 {
		t.Errorf("%d entries hold memory, want none", n)
	}
}

// TestNothingToStandIn passes a failure on as it is where what could stand in for it has
// ended early meanwhile.
func TestNothingToStandIn(t *testing.T) {
	for reply, want := range map[string]int{"503||later": 503, "down": 502} {
		s := newStage(t, settings())
		p := s.streamed(`200|Cache-Control: max-age=5, stale-if-error=60|ETag: "a"`)
		first := s.open("GET /")
		p.come <- "x"
		readN(t, first, 1)
		s.wait(10)
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			p.broken = errors.New("the server left")
			close(p.come)
			_, _ = io.ReadAll(first.Response.Body)
			first.Response.Body.Close()
			return answer(reply, s.clock)(ex)
		}
		if f := s.request("GET /"); f.Status != want || want == 503 && f.Body != "later" {
			t.Errorf("%s: got %d %q", reply, f.Status, f.Body)
		}
	}
}

// TestStandsInAfterAnotherTag: what the servers say of something else makes no difference to
// what may stand in when they then fail, and goes when they say what is newer.
func TestStandsInAfterAnotherTag(t *testing.T) {
	for reply, want := range map[string]string{"503||later": "one", "200|Cache-Control: no-store||two": "two"} {
		s := newStage(t, settings())
		s.origin.reply = answer(`200|Cache-Control: max-age=5, stale-if-error=60|ETag: "a"||one`, s.clock)
		s.request("GET /")
		s.wait(10)
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			if strings.Contains(s.origin.last(), "If-None-Match") {
				return answer(`304|ETag: "b"||`, s.clock)(ex)
			}
			return answer(reply, s.clock)(ex)
		}
		if f := s.request("GET /"); f.Body != want {
			t.Errorf("%s: got %d %q, want %q", reply, f.Status, f.Body, want)
		}
		s.origin.reply = answer("503||later", s.clock)
		if f := s.request("GET /"); (f.Body == "one") != (want == "one") {
			t.Errorf("after %s: got %d %q", reply, f.Status, f.Body)
		}
	}
}
