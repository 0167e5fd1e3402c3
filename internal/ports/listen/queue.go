package listen

import (
	"errors"
	"os"
	"time"
)

// queueTime is how long a queue that is being emptied must be quiet: clients
// whose handshake is under way may still come into it.
const queueTime = 50 * time.Millisecond

// queueLooks bounds how often a queue is looked at again, where new clients
// cannot be kept out of it: others would keep the socket open by coming.
const queueLooks = 10

// handshakeTime is for how long a socket that is being closed waits for clients whose
// handshake is under way for the system. For them it may be over: those that have said
// nothing come after a second (see DeferAccept).
const handshakeTime = 2 * time.Second

// handshakeLook is how often it looks whether there are any.
const handshakeLook = 100 * time.Millisecond

// queue is what an accept loop remembers while it takes the clients that wait in
// the system's queue of a socket that is being closed.
type queue struct {
	looks  int
	before uint64    // accepted when the last look but the first began
	until  time.Time // no handshake is waited for after that
}

// goesOn decides after an error of accept whether there may be somebody still.
func (q *queue) goesOn(s *Socket, err error) bool {
	if q.until.IsZero() {
		q.until = time.Now().Add(handshakeTime)
	}
	if q.looks++; q.looks >= queueLooks {
		return q.awaitHandshakes(s)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		time.Sleep(queueTime) // no descriptor, say: connections that end give theirs back
		return true
	}
	if q.looks == 1 {
		q.before = s.before.Load()
	}
	now := s.accepted.Load()
	quiet := now == q.before
	q.before = now
	if quiet {
		return q.awaitHandshakes(s)
	}
	s.file.SetDeadline(time.Now().Add(queueTime))
	return true
}

// awaitHandshakes gives clients whom the system has kept back some time more. It returns
// false when there are none, or the time is over.
func (q *queue) awaitHandshakes(s *Socket) bool {
	if !s.deferred.Load() || s.hasty.Load() || time.Now().After(q.until) || !hasHandshakes(s.Bound().Port()) {
		return false
	}
	s.file.SetDeadline(time.Now().Add(handshakeLook))
	return true
}
