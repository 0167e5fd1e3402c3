package ratelimit

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// 10 000 requests of one client on all cores, in waves with the clock moved on
// between them, pass exactly as the formula says.
func TestExactOnAllCores(t *testing.T) {
	const waves, each = 20, 500
	f, err := Compile(set(700, time.Second, 100), exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	interval := second / 700
	now := second
	var passed atomic.Int64
	var want, tokens int64 = 0, 100 * interval
	for range waves {
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) * 4 {
			wg.Go(func() {
				ex := exchangetest.New(t)
				ex.Times.Start = now
				for range each / (runtime.GOMAXPROCS(0) * 4) {
					if f.Request(ex) == nil {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		sent := int64(each / (runtime.GOMAXPROCS(0) * 4) * runtime.GOMAXPROCS(0) * 4)
		n := min(sent, tokens/interval)
		want += n
		pause := rand.Int64N(second / 4)
		tokens = min(tokens-n*interval+pause, 100*interval)
		now += pause
	}
	if passed.Load() != want {
		t.Errorf("%d requests passed, want %d", passed.Load(), want)
	}
}

func TestRehearsalTakesNothing(t *testing.T) {
	f, _ := Compile(set(1, time.Second, 0), exchangetest.Env(t))
	ask := func(rehearsal bool) *exchange.Answer {
		ex := exchangetest.New(t)
		ex.Times.Start, ex.Rehearsal = second, rehearsal
		return f.Request(ex)
	}
	for i, c := range []struct{ rehearsal, passes bool }{{true, true}, {true, true}, {false, true}, {true, false}, {false, false}} {
		if got := ask(c.rehearsal) == nil; got != c.passes {
			t.Errorf("request %d, rehearsal %v: passes %v, want %v", i+1, c.rehearsal, got, c.passes)
		}
	}
}
