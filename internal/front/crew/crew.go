// Package crew keeps goroutines that serve requests. The stack of a goroutine grows to what
// a request needs, so one that has served is kept for the next request.
package crew

import (
	"runtime"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/netconn"
)

// Task is what a goroutine of a crew does. It must not panic: a panic ends the process.
type Task interface{ Work() }

// Crew is the goroutines that serve the requests of all connections of a front. The zero
// value is ready. All methods may be called by several goroutines at once.
type Crew struct {
	mu struct {
		sync.Mutex
		conns int       // connections that are served
		idle  []*worker // the one that worked last is the last
		near  []*worker // those that wait for a bell; the same
		bells int       // workers that have one
		alone bool      // there is one processor: none other could be woken
	}
}

const (
	// maxIdle is how many goroutines wait for a task at most, beside those with bells.
	maxIdle = 128
	// maxBells is how many have a bell. They serve one request after the other; when there
	// are more at once, other processors shall be woken.
	maxBells = 4
	// idleTime is how long a goroutine waits while others have work.
	idleTime = int64(10 * time.Second)
)

// worker is a goroutine that waits for a task. A nil task ends it.
type worker struct {
	next  chan Task
	bell  *netconn.Bell // nil if it waits for the channel
	since int64         // when it began to wait
}

// Join notes a connection more.
func (c *Crew) Join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.conns++
	c.mu.alone = runtime.GOMAXPROCS(0) == 1
}

// Leave notes a connection less. With the last one the goroutines that wait end.
func (c *Crew) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.conns--; c.mu.conns > 0 {
		return
	}
	for _, w := range c.mu.idle {
		w.assign(nil)
	}
	for _, w := range c.mu.near {
		w.assign(nil)
	}
	c.mu.idle, c.mu.near = nil, nil
}

// Do has a task done at once, on another processor if one is idle.
func (c *Crew) Do(t Task) {
	c.mu.Lock()
	w := pop(&c.mu.idle)
	c.mu.Unlock()
	c.hand(w, t)
}

// DoNext has a task done as soon as the calling goroutine waits. It is for a caller that is
// about to: no other processor is woken, which costs more than a short request. The task
// waits for what else the caller's processor has to run.
func (c *Crew) DoNext(t Task) {
	c.mu.Lock()
	w := pop(&c.mu.near)
	if w == nil {
		w = pop(&c.mu.idle)
	}
	c.mu.Unlock()
	c.hand(w, t)
}

// hand assigns a task to a worker that was popped, or to a new one if there is none.
func (c *Crew) hand(w *worker, t Task) {
	if w == nil {
		go c.work(t)
		return
	}
	w.assign(t)
}

// pop removes the last worker of a list and returns it, or nil.
func pop(list *[]*worker) *worker {
	n := len(*list)
	if n == 0 {
		return nil
	}
	w := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return w
}

// assign hands a task to a worker that waits, which was popped.
func (w *worker) assign(t Task) {
	bell := w.bell // the worker may get one as soon as it has the task
	w.next <- t
	if bell != nil {
		bell.Ring()
	}
}

// work does t and then what the goroutine is given, until there is one too many or no
// connection is left.
func (c *Crew) work(t Task) {
	w := &worker{next: make(chan Task, 1)}
	for t != nil {
		t.Work()
		if w.bell == nil {
			c.addBell(w)
		}
		if !c.park(w) {
			break
		}
		t = w.wait()
	}
	c.release(w)
}

// addBell gives a worker a bell, if there are few.
func (c *Crew) addBell(w *worker) {
	c.mu.Lock()
	few := c.mu.bells < maxBells && !c.mu.alone
	if few {
		c.mu.bells++
	}
	c.mu.Unlock()
	if !few {
		return
	}
	bell, err := netconn.NewBell(w.called)
	if err != nil { // no descriptor is left, or the system has none
		c.mu.Lock()
		c.mu.bells--
		c.mu.Unlock()
		return
	}
	w.bell = bell
}

// release closes what a worker that ends has.
func (c *Crew) release(w *worker) {
	if w.bell == nil {
		return
	}
	w.bell.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.bells--
}

// park lets a worker wait, and reports false if it is one too many. It ends the worker that
// has waited longest if that was long.
func (c *Crew) park(w *worker) bool {
	now := clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.conns == 0 {
		return false
	}
	if len(c.mu.idle) > 0 && now-c.mu.idle[0].since > idleTime {
		c.mu.idle[0].assign(nil)
		c.mu.idle = append(c.mu.idle[:0], c.mu.idle[1:]...)
	}
	w.since = now
	if w.bell != nil {
		c.mu.near = append(c.mu.near, w)
		return true
	}
	if len(c.mu.idle) >= maxIdle {
		return false
	}
	c.mu.idle = append(c.mu.idle, w)
	return true
}

// wait returns the next task, or nil at the end.
func (w *worker) wait() Task {
	if w.bell != nil {
		_ = w.bell.Wait() // only the worker closes it
	}
	return <-w.next
}

// called reports whether there is a task.
func (w *worker) called() bool { return len(w.next) > 0 }
