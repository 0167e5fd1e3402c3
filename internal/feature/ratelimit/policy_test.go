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
	"headgate/internal/unit"
)

const second = int64(time.Second)

func set(requests int, period time.Duration, burst int) *Config {
	return &Config{Enabled: true, Requests: requests, Period: unit.Duration(period), Burst: burst, Key: keyClientIP, Mode: Enforce}
}

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		requests            int
		period              time.Duration
		burst               int
		interval, tolerance int64
	}{
		{10, time.Second, 0, second / 10, second},
		{3, time.Second, 0, 333_333_333, 999_999_999},
		{600, time.Minute, 1, second / 10, second / 10},
		{1, 24 * time.Hour, 2, 86_400 * second, 172_800 * second},
		{1_000_000, time.Second, 0, 1000, second},
	} {
		p := newPolicy(set(c.requests, c.period, c.burst))
		if p.interval != c.interval || p.tolerance != c.tolerance {
			t.Errorf("%d in %v, burst %d: interval %d, tolerance %d, want %d, %d", c.requests, c.period, c.burst, p.interval, p.tolerance, c.interval, c.tolerance)
		}
	}
}

func TestTakeAndWait(t *testing.T) {
	p := newPolicy(set(10, time.Second, 3))
	now, mark, wait := 5*second, int64(0), int64(0)
	for i, want := range []int{2, 1, 0} {
		if mark, wait = p.take(mark, now); wait != 0 || p.left(mark, now) != want {
			t.Errorf("request %d: wait %d, %d left, want 0, %d", i+1, wait, p.left(mark, now), want)
		}
	}
	if _, wait = p.take(mark, now); wait != second/10 {
		t.Errorf("the fourth waits %v, want 100ms", time.Duration(wait))
	}
	if _, wait = p.take(mark, now+second/10-1); wait != 1 {
		t.Errorf("a nanosecond too soon it waits %d ns, want 1", wait)
	}
	if _, wait = p.take(mark, now+second/10); wait != 0 {
		t.Errorf("in time it waits %d ns", wait)
	}
	if got := p.left(mark, now+10*second); got != 3 {
		t.Errorf("after a pause %d are left, want 3", got)
	}
}

// In any stretch of time no more requests pass than the burst and what came back
// in that time; and whoever waits as long as was said passes.
func TestNoStretchOfTimeLetsMorePass(t *testing.T) {
	for range 200 {
		p := newPolicy(set(1+rand.IntN(1000), time.Second+time.Duration(rand.Int64N(5*second)), 1+rand.IntN(50)))
		var passed []int64
		mark, wait := int64(0), int64(0)
		for now := int64(1); len(passed) < 200; now += rand.Int64N(3 * p.interval) {
			before := mark
			if mark, wait = p.take(mark, now); wait == 0 {
				passed = append(passed, now)
			} else if _, again := p.take(before, now+wait); again != 0 || before != mark {
				t.Fatalf("%+v: after waiting %d it still waits %d", p, wait, again)
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				if most := int64(p.burst) + (passed[j]-passed[i])/p.interval; int64(j-i+1) > most {
					t.Fatalf("%+v: %d requests in %d ns, want at most %d", p, j-i+1, passed[j]-passed[i], most)
				}
			}
		}
	}
}

// 10 000 requests of one client on all cores, in waves with the clock moved on
// between them, pass exactly as the formula says.
func TestExactOnAllCores(t *testing.T) {
	const waves, each = 20, 500
	f, err := Compile(set(700, time.Second, 100), "test", exchangetest.Env(t))
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
	f, _ := Compile(set(1, time.Second, 0), "test", exchangetest.Env(t))
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
