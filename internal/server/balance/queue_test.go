package balance

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func wanted() bool { return false }

// bounded returns a group of servers that run most requests each.
func bounded(servers, limit, length int) *Group {
	q := NewQueue(length)
	var list []Member
	for i := range servers {
		list = append(list, Member{ID: name(i), Weight: 1, Gauge: newGauge(limit, q)})
	}
	return New(list, Options{Queue: q})
}

func TestQueueServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := bounded(1, 1, 10)
		if _, outcome := g.Choose(&Ask{Now: 1}); outcome != Chosen {
			t.Fatal("the first finds it full")
		}
		var order []int
		var all sync.WaitGroup
		for n := range 5 {
			all.Go(func() {
				i, outcome := g.Wait(&Ask{Now: 1}, time.Minute, wanted)
				if outcome != Chosen {
					t.Errorf("waiter %d: outcome %d", n, outcome)
					return
				}
				order = append(order, n)
				g.members[i].Gauge.Release()
			})
			synctest.Wait()
		}
		equal(t, "waiting", g.queue.Waiting(), 5)
		// Nobody overtakes those who wait.
		g.members[0].Gauge.active.Add(-1)
		_, outcome := g.Choose(&Ask{Now: 1})
		equal(t, "newcomer", outcome, Full)
		g.members[0].Gauge.active.Add(1)
		g.members[0].Gauge.Release()
		all.Wait()
		for n := range order {
			equal(t, "order", order[n], n)
		}
		equal(t, "served", len(order), 5)
		equal(t, "active", g.members[0].Gauge.Active(), 0)
		equal(t, "waiting", g.queue.Waiting(), 0)
	})
}

func TestQueueIsBoundedInLengthAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := bounded(1, 1, 1)
		g.Choose(&Ask{Now: 1})
		var all sync.WaitGroup
		all.Go(func() {
			began := time.Now()
			_, outcome := g.Wait(&Ask{Now: 1}, 3*time.Second, wanted)
			equal(t, "after the wait", outcome, Full)
			equal(t, "waited", time.Since(began), 3*time.Second)
		})
		synctest.Wait()
		_, outcome := g.Wait(&Ask{Now: 1}, time.Hour, wanted)
		equal(t, "the queue is full", outcome, Full)
		all.Wait()
		_, outcome = g.Wait(&Ask{Now: 1}, 0, wanted)
		equal(t, "no patience", outcome, Full)
		equal(t, "waiting", g.queue.Waiting(), 0)
		// A client that leaves does not keep its place.
		var left atomic.Bool
		all.Go(func() {
			_, outcome := g.Wait(&Ask{Now: 1}, time.Hour, left.Load)
			equal(t, "gone", outcome, Full)
		})
		synctest.Wait()
		left.Store(true)
		all.Wait()
		equal(t, "waiting", g.queue.Waiting(), 0)
	})
}

func TestAServerThatComesBackIsHandedToThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := bounded(2, 1, 10)
		g.members[1].Gauge.Set(Unhealthy)
		g.Choose(&Ask{Now: 1})
		got := -1
		var all sync.WaitGroup
		all.Go(func() { got, _ = g.Wait(&Ask{Now: 1}, time.Minute, wanted) })
		synctest.Wait()
		g.members[1].Gauge.Clear(Unhealthy)
		all.Wait()
		equal(t, "server", got, 1)
	})
}

// A server that has room is not idle because the first in the queue cannot use it: who
// comes behind does not wait for another one, however long the queue may be.
func TestAServerThatTheFirstCannotUseServesThoseBehind(t *testing.T) {
	for _, length := range []int{10, 1} {
		synctest.Test(t, func(t *testing.T) {
			g := bounded(2, 1, length)
			var tried Tried
			tried.Add(0)
			one, _ := g.Choose(&Ask{Now: 1, Tried: tried})
			equal(t, "the server that is full", one, 1)
			var all sync.WaitGroup
			all.Go(func() { // it has tried the server that has room
				got, _ := g.Wait(&Ask{Now: 1, Tried: tried}, time.Minute, wanted)
				equal(t, "server of the first", got, 1)
			})
			synctest.Wait()
			for range 3 {
				began := time.Now()
				got, outcome := g.Wait(&Ask{Now: 1}, time.Minute, wanted)
				equal(t, "outcome", outcome, Chosen)
				equal(t, "server", got, 0)
				equal(t, "waited", time.Since(began), 0)
				g.members[0].Gauge.Release()
			}
			g.members[1].Gauge.Release()
			all.Wait()
			equal(t, "waiting", g.queue.Waiting(), 0)
		})
	}
}

// Who waits hears that nobody takes requests any more, and does not wait for that.
func TestWhoWaitsHearsThatAllAreOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := bounded(1, 1, 10)
		g.Choose(&Ask{Now: 1})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				_, outcome := g.Wait(&Ask{Now: 1}, time.Hour, wanted)
				equal(t, "outcome", outcome, None)
			})
		}
		synctest.Wait()
		began := time.Now()
		g.members[0].Gauge.Set(Disabled)
		all.Wait()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("they heard of it after %v", waited)
		}
	})
}

// Under load no server ever runs more than it may, nobody is forgotten, and at the
// end nothing runs.
func TestBoundHoldsUnderLoad(t *testing.T) {
	const servers, limit, clients, rounds = 3, 2, 40, 300
	g := bounded(servers, limit, clients)
	var running [servers]atomic.Int32
	var all sync.WaitGroup
	var failed atomic.Int32
	for range clients {
		all.Go(func() {
			for range rounds {
				i, outcome := g.Wait(&Ask{Now: 1}, time.Minute, wanted)
				if outcome != Chosen {
					failed.Add(1)
					continue
				}
				if running[i].Add(1) > limit {
					t.Error("more than it may")
				}
				running[i].Add(-1)
				g.members[i].Gauge.Release()
			}
		})
	}
	all.Wait()
	equal(t, "failed", failed.Load(), 0)
	for i := range g.members {
		equal(t, "active", g.members[i].Gauge.Active(), 0)
	}
}
