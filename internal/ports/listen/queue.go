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

// queue is what an accept loop remembers while it takes the clients that wait in
// the system's queue of a socket that is being closed.
type queue struct {
	looks  int
	before uint64 // accepted when the last look but the first began
}

// goesOn decides after an error of accept whether there may be somebody still.
func (q *queue) goesOn(s *Socket, err error) bool {
	if q.looks++; q.looks >= queueLooks {
		return false
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
	s.file.SetDeadline(time.Now().Add(queueTime))
	return !quiet
}
