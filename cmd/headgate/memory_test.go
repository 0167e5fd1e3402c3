package main

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func TestMemoryLimitIsTheSmallestOfTheControlGroups(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, test := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no control groups", fstest.MapFS{}, math.MaxInt64},
		{"no limit", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, math.MaxInt64},
		{"in a container", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1000\n")}, 1000},
		{"around the unit", fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/headgate.service\n"),
			"sys/fs/cgroup/system.slice/headgate.service/memory.max": file("max\n"),
			"sys/fs/cgroup/system.slice/memory.max":                  file("2000\n"),
		}, 2000},
	} {
		if got := memoryLimit(test.root); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestMemoryOfTheStartIsGivenBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		applied := make(chan struct{})
		go tidyMemory(ctx, applied, func() uint64 { return 0 })
		collections := func(within time.Duration) uint32 {
			var before, after runtime.MemStats
			synctest.Wait()
			runtime.ReadMemStats(&before)
			time.Sleep(within)
			synctest.Wait()
			runtime.ReadMemStats(&after)
			return after.NumForcedGC - before.NumForcedGC
		}
		if n := collections(time.Minute); n != 0 {
			t.Errorf("%d collections before a configuration was applied", n)
		}
		close(applied)
		if n := collections(settleAfter + time.Millisecond); n != 1 {
			t.Errorf("%d collections after it was, want 1", n)
		}
		if n := collections(time.Minute); n != 0 {
			t.Errorf("%d collections later", n)
		}
	})
}

func TestManyMoreOrFewerAreWorthALook(t *testing.T) {
	for _, test := range []struct {
		now, before int
		want        bool
	}{
		{0, 0, false},
		{tidyChange, 0, false},
		{tidyChange + 1, 0, true},
		{0, tidyChange + 1, true},
		{90_000, 100_000, false},
		{110_000, 100_000, false},
		{80_000, 100_000, true},
		{120_000, 100_000, true},
	} {
		if got := isOther(test.now, test.before); got != test.want {
			t.Errorf("%d after %d: got %v, want %v", test.now, test.before, got, test.want)
		}
	}
}

func TestMemoryIsGivenBackWhenChangesHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var changes atomic.Uint64
		go tidyMemory(ctx, nil, changes.Load)
		synctest.Wait()
		collections := func(do func()) uint32 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			do()
			synctest.Wait()
			runtime.ReadMemStats(&after)
			return after.NumForcedGC - before.NumForcedGC
		}
		if n := collections(func() {
			for range 100 {
				changes.Add(1)
				time.Sleep(time.Second)
			}
		}); n != 0 {
			t.Errorf("%d collections while changes are made", n)
		}
		if n := collections(func() { time.Sleep(time.Minute) }); n != 1 {
			t.Errorf("%d collections after the last, want 1", n)
		}
	})
}

func TestMemoryIsTidiedWhenManyHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var before, after runtime.MemStats
		go tidyMemory(ctx, nil, func() uint64 { return 0 })
		synctest.Wait()
		hold := make(chan struct{})
		for range 2 * tidyChange {
			go func() { <-hold }()
		}
		runtime.ReadMemStats(&before)
		time.Sleep(2*tidyEvery + time.Second)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n < 2 {
			t.Errorf("%d collections after 2000 goroutines began, want 2", n)
		}
		runtime.ReadMemStats(&before)
		time.Sleep(10 * tidyEvery)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n > 1 {
			t.Errorf("%d collections while nothing changed", n)
		}
		close(hold)
	})
}
