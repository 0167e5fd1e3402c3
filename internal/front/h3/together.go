package h3

import (
	"runtime"
	"sync"
)

// together passes short responses that are ready at the same time to QUIC one right
// after the other. quic-go's sender is woken by the first of them and runs when the
// writing goroutine blocks: written each by its own worker, every response needed a
// packet and a system call of its own.
type together struct {
	sync.Mutex
	ready []*stream
}

// joinMax is the longest response that waits for others, in bytes: a longer one fills
// packets by itself.
const joinMax = 1 << 10

// sendWhole writes the whole of a response or its last bytes, and ends the stream,
// together with those of others. It reports false, and has done nothing, if that cannot
// be done at once: the client has to read something first, or has left.
func (s *stream) sendWhole(b []byte) bool {
	t := &s.conn.together
	t.Lock()
	s.ready, s.sent = b, nil
	t.ready = append(t.ready, s)
	t.Unlock()
	runtime.Gosched() // others that have something to send add it
	t.Lock()
	defer t.Unlock()
	if s.ready != nil { // no other goroutine has done it
		s.conn.releaseOld()
		for _, other := range t.ready {
			if other.sent = other.quic.TryWriteAll(other.ready); other.sent == nil {
				other.quic.Close()
			}
			other.ready = nil
		}
		clear(t.ready)
		t.ready = t.ready[:0]
	}
	return s.sent == nil
}

// others reports whether requests besides one are under way.
func (c *Conn) others() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.running > 1
}
