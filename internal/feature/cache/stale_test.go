package cache

import (
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
	s.ask("GET /")
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
