package h3

// maxIdle is how many goroutines of a connection wait for a request. Their stacks
// have grown to what one needs.
const maxIdle = 8

// give has a stream served.
func (c *Conn) give(s *stream) {
	select {
	case c.hand <- s:
	default:
		c.workers.Go(func() { c.work(s) })
	}
}

// work serves s and then what it is given, until it is one too many or the
// connection ends.
func (c *Conn) work(s *stream) {
	for {
		s.serve()
		if c.idle.Add(1) > maxIdle {
			c.idle.Add(-1)
			return
		}
		select {
		case s = <-c.hand:
			c.idle.Add(-1)
		case <-c.done:
			return
		}
	}
}
