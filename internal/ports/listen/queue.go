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

// handshakeLook is how often a socket that is being closed looks for clients whose
// handshake is under way for the system. For them it may be over: those that have said
// nothing come after a second (see DeferAccept).
const handshakeLook = 100 * time.Millisecond

// handshakeLooks bounds how often, for two seconds in all. Looks are counted, and not
// the time, which goes on while the process does not.
const handshakeLooks = 20

// queue is the state of an accept loop while it accepts the clients in the
// system's queue of a socket that is being closed.
type queue struct {
	looks      int
	handshakes int    // looks while there were handshakes
	missed     int    // looks that came too late for clients who were there
	before     uint64 // accepted at the last check but the first start
}

// goesOn decides after an error of accept whether the queue may have more connections.
func (q *queue) goesOn(s *Socket, err error) bool {
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if q.looks++; q.looks < queueLooks && !late {
		time.Sleep(queueTime) // for example no descriptor: connections that end release theirs
		return true
	}
	if q.looks == 1 {
		q.before = s.before.Load()
	}
	now := s.accepted.Load()
	quiet := now == q.before
	q.before = now
	wait := queueTime
	switch {
	case !quiet && q.looks < queueLooks:
	// Who leaves the handshakes is in the queue, so the queue is looked at last.
	case q.handshakes < handshakeLooks && s.keepsBack():
		q.handshakes++
		wait = handshakeLook
	// A deadline that has passed keeps accept from looking, be the queue empty or not:
	// all this time may have gone by while the process did not run.
	case q.missed < queueLooks && late && s.hasQueue():
		q.missed++
	default:
		return false
	}
	s.file.SetDeadline(time.Now().Add(wait))
	return true
}

// keepsBack reports whether there are clients to wait for whom the system keeps back.
func (s *Socket) keepsBack() bool {
	return s.deferred.Load() && !s.hasty.Load() && hasHandshakes(s.Bound().Port())
}
