package memory

import (
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/storetest"
	"headgate/internal/testhouse"
)

func TestConformance(t *testing.T) { storetest.Run(t, openEngine) }

func TestMessages(t *testing.T) { storetest.RunMessages(t, openEngine) }

func openEngine(*testing.T) storetest.Engine {
	var passed atomic.Int64
	begin := time.Now()
	s := NewAt(func() time.Time { return begin.Add(time.Duration(passed.Load())) })
	return storetest.Engine{
		Store: s,
		Again: func(*testing.T) store.Store {
			s = s.Reopen()
			return s
		},
		Advance: func(d time.Duration) { passed.Add(int64(d)) },
		Other:   openEngine,
	}
}

// TestRandomLives leads lives of the engine against a model; -lives leads more of them.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 100, func(t *testing.T, seed uint64) { storetest.Life(t, seed, openEngine) })
}
