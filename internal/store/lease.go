package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is the right to do what one node only may do, for a while. Who holds one
// renews it, say at every third of its time, and names it in the changes that it
// makes, so that a change which comes too late is refused. Its methods may be called
// by several goroutines at once.
type Lease struct {
	// Name is what was acquired.
	Name string
	// Token grows each time that the lease is acquired: other systems can use it to fence
	// requests of former holders.
	Token uint64

	engine LeaseEngine // constant
	ttl    time.Duration
	lost   chan struct{}

	mu struct {
		sync.Mutex
		over  bool
		timer *time.Timer // closes lost
	}
}

// LeaseEngine is what an engine does for a lease that it has given.
type LeaseEngine interface {
	// RenewLease makes the lease last for ttl from now. The error wraps ErrFenced
	// when it has ended.
	RenewLease(ctx context.Context, name string, token uint64, ttl time.Duration) error
	// ReleaseLease ends the lease. One that has ended is no error.
	ReleaseLease(ctx context.Context, name string, token uint64) error
}

// NewLease returns a lease that an engine has just given for ttl, counted from
// before it was asked. It is for engines.
func NewLease(engine LeaseEngine, name string, token uint64, ttl time.Duration, asked time.Time) *Lease {
	l := &Lease{Name: name, Token: token, engine: engine, ttl: ttl, lost: make(chan struct{})}
	l.mu.timer = time.AfterFunc(safe(ttl, asked), l.end)
	return l
}

// safe returns for how much longer a holder may act: two thirds of the time since
// the engine was asked, by the node's own clock that never jumps.
func safe(ttl time.Duration, asked time.Time) time.Duration {
	return max(ttl*2/3-time.Since(asked), 0)
}

// Lost returns a channel that is closed when the lease is not to be relied on any
// more: it was not renewed for two thirds of its time, a renewal was refused, or it
// was released. That is before others can acquire it.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Renew makes the lease last for its whole time again. The error wraps ErrFenced when
// it has ended; the lease is lost then. After another error it goes on until Lost.
func (l *Lease) Renew(ctx context.Context) error {
	asked := time.Now()
	select {
	case <-l.lost:
		return fmt.Errorf("renew lease %s: %w", l.Name, ErrFenced)
	default:
	}
	err := l.engine.RenewLease(ctx, l.Name, l.Token, l.ttl)
	switch {
	case err == nil:
		l.extend(asked)
		return nil
	case errors.Is(err, ErrFenced):
		l.end()
	}
	return fmt.Errorf("renew lease %s: %w", l.Name, err)
}

// Release gives the lease back at once. It is lost then, also if an error comes
// back, after which the engine lets it run out.
func (l *Lease) Release(ctx context.Context) error {
	l.end()
	return l.engine.ReleaseLease(ctx, l.Name, l.Token)
}

func (l *Lease) extend(asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.over {
		l.mu.timer.Reset(safe(l.ttl, asked))
	}
}

func (l *Lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.over {
		l.mu.over = true
		l.mu.timer.Stop()
		close(l.lost)
	}
}
