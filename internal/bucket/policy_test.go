package bucket

import (
	"math/rand/v2"
	"testing"
	"time"
)

const second = int64(time.Second)

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
		p := New(c.requests, c.period, c.burst)
		if p.interval != c.interval || p.tolerance != c.tolerance {
			t.Errorf("%d in %v, burst %d: interval %d, tolerance %d, want %d, %d", c.requests, c.period, c.burst, p.interval, p.tolerance, c.interval, c.tolerance)
		}
	}
}

func TestTakeAndWait(t *testing.T) {
	p := New(10, time.Second, 3)
	now, mark, wait := 5*second, int64(0), int64(0)
	for i, want := range []int{2, 1, 0} {
		if mark, wait = p.conform(mark, now); wait != 0 || p.Left(mark, now) != want {
			t.Errorf("request %d: wait %d, %d left, want 0, %d", i+1, wait, p.Left(mark, now), want)
		}
	}
	if _, wait = p.conform(mark, now); wait != second/10 {
		t.Errorf("the fourth waits %v, want 100ms", time.Duration(wait))
	}
	if _, wait = p.conform(mark, now+second/10-1); wait != 1 {
		t.Errorf("a nanosecond too soon it waits %d ns, want 1", wait)
	}
	if _, wait = p.conform(mark, now+second/10); wait != 0 {
		t.Errorf("in time it waits %d ns", wait)
	}
	if got := p.Left(mark, now+10*second); got != 3 {
		t.Errorf("after a pause %d are left, want 3", got)
	}
}

// In any stretch of time no more requests pass than the burst and what came back
// in that time; and whoever waits as long as was said passes.
func TestNoStretchOfTimeLetsMorePass(t *testing.T) {
	for range 200 {
		p := New(1+rand.IntN(1000), time.Second+time.Duration(rand.Int64N(5*second)), 1+rand.IntN(50))
		var passed []int64
		mark, wait := int64(0), int64(0)
		for now := int64(1); len(passed) < 200; now += rand.Int64N(3 * p.interval) {
			before := mark
			if mark, wait = p.conform(mark, now); wait == 0 {
				passed = append(passed, now)
			} else if _, again := p.conform(before, now+wait); again != 0 || before != mark {
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
