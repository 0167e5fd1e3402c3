package h2

// worker is a goroutine that serves streams, one after the other. Its stack has
// grown to what a request needs, so it is kept for the next one for a while.
type worker struct {
	wake chan *stream
	next *worker
}

// schedule has a stream served, or what is collected written if s is nil. c.mu is
// held.
func (c *Conn) schedule(s *stream) {
	if w := c.mu.idle; w != nil {
		c.mu.idle = w.next
		c.mu.idles--
		c.mu.minIdles = min(c.mu.minIdles, c.mu.idles)
		w.wake <- s
		return
	}
	c.workers.Add(1)
	go c.work(s)
}

// work serves s and then what it is given, until it is sent home.
func (c *Conn) work(s *stream) {
	defer c.workers.Done()
	defer c.mu.Guard()
	var self *worker
	for {
		if s == nil {
			c.mu.Flush()
		} else {
			s.serve()
		}
		if self == nil {
			self = &worker{wake: make(chan *stream, 1)}
		}
		c.mu.Lock()
		if c.mu.Err != nil {
			c.mu.Unlock()
			return
		}
		self.next, c.mu.idle = c.mu.idle, self
		c.mu.idles++
		c.mu.Unlock()
		var ok bool
		if s, ok = <-self.wake; !ok {
			return
		}
	}
}

// serve completes the exchange of a stream.
func (s *stream) serve() {
	if s.answer != nil {
		s.port.Refuse(&s.ex, s.answer)
	} else {
		s.port.Serve(&s.ex)
	}
	s.finish()
}

// trim ends the workers that were not needed since the last trim, and releases
// memory.
func (c *Conn) trim() {
	c.yield()
	c.mu.Lock()
	n := c.mu.idles - c.mu.minIdles
	c.mu.Unlock()
	c.dismiss(n)
	c.mu.Lock()
	c.mu.minIdles = c.mu.idles
	c.mu.Unlock()
}

// dismiss sends idle workers home but for keep of them.
func (c *Conn) dismiss(keep int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.idles > keep && c.mu.idle != nil {
		w := c.mu.idle
		c.mu.idle = w.next
		c.mu.idles--
		close(w.wake)
	}
}
