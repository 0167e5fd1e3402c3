package h2

// schedule has a stream served. If it is the only request of the connection, the reader
// waits next, and no other processor need be woken.
func (c *Conn) schedule(s *stream, only bool) {
	c.workers.Add(1)
	if only {
		c.front.crew.DoNext(s)
		return
	}
	c.front.crew.Do(s)
}

// Work completes the exchange of a stream.
func (s *stream) Work() {
	c := s.conn // a stream that has ended is another's
	defer c.workers.Done()
	defer c.mu.Guard()
	if s.answer != nil {
		s.port.Refuse(&s.ex, s.answer)
	} else {
		s.port.Serve(&s.ex)
	}
	s.finish()
}

// flusher is a connection whose collected frames are to be written.
type flusher Conn

// Work writes what is collected.
func (f *flusher) Work() {
	c := (*Conn)(f)
	defer c.workers.Done()
	defer c.mu.Guard()
	c.mu.Flush()
}

// flushAside has what is collected written by a worker.
func (c *Conn) flushAside() {
	c.workers.Add(1)
	c.front.crew.Do((*flusher)(c))
}
