package crew

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// task counts that it was done, and does something else then.
type task struct {
	done *atomic.Int64
	then func()
}

func (t *task) Work() {
	if t.then != nil {
		t.then()
	}
	t.done.Add(1)
}

// TestEveryTaskIsDoneOnce gives tasks from many goroutines, some of which wait afterwards
// and some of which do not, while connections come and go.
func TestEveryTaskIsDoneOnce(t *testing.T) {
	var c Crew
	var done atomic.Int64
	const givers, each = 8, 2000
	var all sync.WaitGroup
	for g := range givers {
		all.Go(func() {
			for i := range each {
				c.Join()
				give := c.Do
				if (g+i)%2 == 0 {
					give = c.DoNext
				}
				wait := make(chan struct{})
				give(&task{&done, func() { close(wait) }})
				if i%3 != 0 {
					<-wait
				}
				c.Leave()
			}
		})
	}
	all.Wait()
	testhouse.Eventually(t, "all tasks are done", func() bool { return done.Load() == givers*each })
}

// TestATaskIsDoneThoughTheCallerGoesOn holds that DoNext needs no caller that waits in the
// end: it may run for long, where another processor is free.
func TestATaskIsDoneThoughTheCallerGoesOn(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor")
	}
	var c Crew
	c.Join()
	defer c.Leave()
	var done atomic.Int64
	for i := range int64(50) {
		c.DoNext(&task{done: &done})
		for end := time.Now().Add(time.Minute); done.Load() != i+1; {
			if time.Now().After(end) {
				t.Fatalf("task %d was not done", i)
			}
		}
	}
}

// TestTheCrewGoesHome holds that no goroutine is left when the last connection has gone, and
// that few wait before.
func TestTheCrewGoesHome(t *testing.T) {
	var c Crew
	c.Join()
	var done atomic.Int64
	const many = 3 * maxIdle
	begin := make(chan struct{})
	for range many {
		c.Do(&task{&done, func() { <-begin }})
	}
	close(begin)
	testhouse.Eventually(t, "all but the idle ones have ended", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return done.Load() == many && len(c.mu.idle) == maxIdle && len(c.mu.near) <= maxBells
	})
	c.Leave()
	testhouse.Eventually(t, "no bell is left", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.mu.bells == 0 && len(c.mu.idle) == 0 && len(c.mu.near) == 0
	})
}
