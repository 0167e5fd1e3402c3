package local

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/storetest"
	"headgate/internal/testhouse"
)

// turned is a clock that a test turns.
type turned struct {
	mu sync.Mutex
	at time.Time // guarded by mu
}

func newClock() *turned { return &turned{at: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)} }

func (c *turned) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *turned) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// testLog writes to the test's log.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func openDir(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Log == nil {
		o.Log = testLog(t)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	for _, c := range []struct{ name, key string }{{"key in a file", ""}, {"key from outside", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"}} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Engine { return openEngine(t, c.key) })
		})
	}
}

// TestRandomLives leads lives of the engine against a model; -lives leads more of them.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 6, func(t *testing.T, seed uint64) {
		storetest.Life(t, seed, func(t *testing.T) storetest.Engine { return openEngine(t, "") })
	})
}

func openEngine(t *testing.T, key string) storetest.Engine {
	clock := newClock()
	o := Options{Dir: t.TempDir(), Clock: clock.now, Key: key}
	s := openDir(t, o)
	return storetest.Engine{
		Store: s,
		Again: func(t *testing.T) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openDir(t, o)
			return s
		},
		Advance: func(d time.Duration) {
			clock.advance(d)
			s.care(t.Context())
			if err := s.Trouble(); err != nil {
				t.Error(err)
			}
		},
		Other: func(t *testing.T) storetest.Engine { return openEngine(t, key) },
	}
}
