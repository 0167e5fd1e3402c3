package h3

import "sync"

// crew is the goroutines that serve the requests of all connections of a front. Some of
// them wait for more: their stacks have grown to what a request needs.
type crew struct {
	sync.Mutex
	conns int       // connections that are served
	idle  []*worker // the one that served last is the last
}

// maxIdle is how many goroutines of a front wait for a request.
const maxIdle = 128

// worker is a goroutine that waits for a request. It is closed where there is none.
type worker struct{ next chan *stream }

// join notes a connection more.
func (w *crew) join() {
	w.Lock()
	defer w.Unlock()
	w.conns++
}

// leave notes a connection less. With the last one the workers that wait end.
func (w *crew) leave() {
	w.Lock()
	defer w.Unlock()
	if w.conns--; w.conns > 0 {
		return
	}
	for _, one := range w.idle {
		close(one.next)
	}
	w.idle = nil
}

// pop returns the worker that served last, or nil.
func (w *crew) pop() *worker {
	w.Lock()
	defer w.Unlock()
	n := len(w.idle)
	if n == 0 {
		return nil
	}
	one := w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	return one
}

// push lets a worker wait, and reports false if it is one too many.
func (w *crew) push(one *worker) bool {
	w.Lock()
	defer w.Unlock()
	if w.conns == 0 || len(w.idle) >= maxIdle {
		return false
	}
	w.idle = append(w.idle, one)
	return true
}

// schedule has a stream served.
func (c *Conn) schedule(s *stream) {
	c.workers.Add(1)
	crew := &c.front.crew
	if one := crew.pop(); one != nil {
		one.next <- s
		return
	}
	go crew.work(s)
}

// work serves s and then what it is given, until it is one too many or no connection is
// left.
func (w *crew) work(s *stream) {
	one := &worker{next: make(chan *stream, 1)}
	for s != nil {
		s.serveGuarded()
		if !w.push(one) {
			return
		}
		s = <-one.next
	}
}
