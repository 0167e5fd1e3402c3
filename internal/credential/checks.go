package credential

import (
	"context"
	"runtime"
	"time"
)

// Checks bounds how many passwords are checked at once, as each takes 19 MiB and a processor
// for a while. One place is reserved for those who are known, so that guesses of others do
// not keep them out. Its methods may be called by several goroutines at once.
type Checks struct{ open, reserved chan struct{} }

// checkPatience is how long a check waits for a place.
const checkPatience = 3 * time.Second

// NewChecks returns places for half of the processors, and one that is reserved.
func NewChecks() *Checks {
	return &Checks{open: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), reserved: make(chan struct{}, 1)}
}

// Open is how many places there are for everyone.
func (c *Checks) Open() int { return cap(c.open) }

// Acquire waits up to three seconds for a place, and reports whether there is one. Known is
// whether the reserved place may be used. Release gives the place back.
func (c *Checks) Acquire(ctx context.Context, known bool) (release func(), ok bool) {
	timer := time.NewTimer(checkPatience)
	defer timer.Stop()
	var reserved chan struct{}
	if known {
		reserved = c.reserved
	}
	select {
	case reserved <- struct{}{}:
		return func() { <-c.reserved }, true
	case c.open <- struct{}{}:
		return func() { <-c.open }, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, false
}
