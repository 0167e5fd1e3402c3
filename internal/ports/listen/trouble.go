package listen

import (
	"errors"
	"syscall"
	"time"
)

// How long a socket rests when the system refuses a connection, and how often
// it says so.
const (
	shortestRest = 5 * time.Millisecond
	longestRest  = time.Second
	sayEvery     = time.Minute
)

// trouble is what an accept loop remembers of refusals by the system.
type trouble struct {
	rest time.Duration
	said time.Time
}

// note notes an error of accept and rests. What is open goes on meanwhile.
func (t *trouble) note(s *Socket, err error) {
	if errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EINTR) {
		return // the client had gone again
	}
	t.rest = min(max(2*t.rest, shortestRest), longestRest)
	if time.Since(t.said) >= sayEvery {
		t.said = time.Now()
		message, remedy := explain(err)
		s.log.Error(message, "address", s.address.String(), "error", cause(err), "remedy", remedy)
	}
	time.Sleep(t.rest)
}

// over records that a connection was accepted.
func (t *trouble) over() { t.rest = 0 }

// explain returns the message for an error of accept, and what an operator can do.
func explain(err error) (message, remedy string) {
	const files = "accept failed, too many open files, backing off; open connections go on"
	switch {
	case errors.Is(err, syscall.EMFILE):
		return files, "raise the limit of open files of the process (LimitNOFILE in systemd, ulimit -n)"
	case errors.Is(err, syscall.ENFILE):
		return files, "raise the limit of open files of the system (sysctl fs.file-max)"
	}
	return "accept failed, backing off; open connections go on", "see what the system has run out of"
}
