package tcp

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A bounded context ends like one of package context, whoever asks it how.
func TestBoundedEndsInEachWay(t *testing.T) {
	long, short := time.Hour, time.Nanosecond
	b := bound(long)
	if err := b.Err(); err != nil {
		t.Errorf("at the beginning: %v", err)
	}
	if end, ok := b.Deadline(); !ok || time.Until(end) > long || time.Until(end) < long/2 {
		t.Errorf("ends at %v, %v", end, ok)
	}
	b.stop()
	if err := b.Err(); err != context.Canceled {
		t.Errorf("stopped: %v", err)
	}
	<-b.Done() // closed also for who asks behind its end
	b = bound(long)
	ended := make(chan struct{})
	context.AfterFunc(b, func() { close(ended) })
	b.stop()
	<-ended
	if err := b.Err(); err != context.Canceled {
		t.Errorf("stopped while somebody waits: %v", err)
	}
	b = bound(short)
	for b.Err() == nil {
	}
	if err := b.Err(); err != context.DeadlineExceeded {
		t.Errorf("late, with nobody waiting: %v", err)
	}
	b = bound(short)
	<-b.Done()
	if err := b.Err(); err != context.DeadlineExceeded {
		t.Errorf("late: %v", err)
	}
	within, cancel := context.WithCancel(bound(short))
	defer cancel()
	<-within.Done()
	if err := within.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context below: %v", err)
	}
}

// A context on which nobody waits makes no timer.
func TestBoundedAllocatesItselfAlone(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		b := bound(time.Hour)
		if b.Err() != nil {
			t.Error("has ended")
		}
		b.stop()
	}); n > 1 {
		t.Errorf("%v allocations, want at most the context", n)
	}
}
