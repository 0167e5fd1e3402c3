package tcp

import (
	"context"
	"sync"
	"time"
)

// bounded is a context with a time limit. It makes no timer before its end is waited for:
// most servers accept a connection before that.
type bounded struct {
	until time.Time // constant

	mu    sync.Mutex
	over  bool            // stop was called
	below context.Context // what waits, once Done was called
	end   context.CancelFunc
}

// bound returns a context that ends after d, or when stop is called.
func bound(d time.Duration) *bounded { return &bounded{until: time.Now().Add(d)} }

// stop ends the context.
func (b *bounded) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.end != nil {
		b.end()
	}
}

// Deadline returns when the context ends.
func (b *bounded) Deadline() (time.Time, bool) { return b.until, true }

// Done returns what is closed at the end.
func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.below == nil {
		b.below, b.end = context.WithDeadline(context.Background(), b.until)
		if b.over {
			b.end()
		}
	}
	return b.below.Done()
}

// Err returns why the context has ended, nil if it has not.
func (b *bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.below != nil:
		return b.below.Err()
	case b.over:
		return context.Canceled
	case !time.Now().Before(b.until):
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns nil, except for the key with which package context avoids a
// goroutine.
func (b *bounded) Value(key any) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.below == nil {
		return nil
	}
	return b.below.Value(key)
}
