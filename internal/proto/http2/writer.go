package http2

import (
	"runtime"
	"sync"
)

// Writer collects the frames of a connection. A goroutine that has collected some writes
// for all if no other one is writing: frames that are collected meanwhile are sent with the
// next write.
//
// Its mutex guards it and what the connection keeps beside it. Methods that end in
// Locked, and Space, are for callers that hold it.
type Writer struct {
	sync.Mutex
	// Out is the frames that are to be written. What is appended to Space is put here.
	Out []byte
	// Err is why nothing can be written any more, or nil.
	Err error
	// Active is how many requests are under way. While there are others than that of
	// the caller, Flush lets them add what they have first.
	Active int

	sink    Sink
	rounds  int
	keep    int
	writing bool
	written chan struct{} // closed when a writer stops, if anyone waits
}

// Sink is the connection of a Writer.
type Sink interface {
	// WriteNow writes b. It is called without the lock.
	WriteNow(b []byte) error
	// WroteLocked is called after a write: goroutines that wait for space may
	// continue.
	WroteLocked()
	// FailedLocked is called after a write has failed. It has to call
	// EndLocked.
	FailedLocked(err error)
	// PassLocked has another goroutine write what is collected: one that calls Flush,
	// WriteLocked, or that WriteAsideLocked starts.
	PassLocked()
	// Broke ends the connection, because a goroutine of it has panicked with v. The lock
	// may have been left held.
	Broke(v any)
}

// Init prepares the writer. A goroutine writes at most rounds times before
// another takes its turn, 0 for as long as there is something to write; up to
// keep bytes of memory are kept for reuse.
func (w *Writer) Init(sink Sink, rounds, keep int) {
	if rounds == 0 {
		rounds = int(^uint(0) >> 1)
	}
	w.sink, w.rounds, w.keep = sink, rounds, keep
}

// Space returns the collected bytes, to append to.
func (w *Writer) Space() []byte {
	if w.Out == nil {
		w.Out = TakeOut()
	}
	return w.Out
}

// DueLocked reports whether frames are collected and no goroutine is writing.
func (w *Writer) DueLocked() bool { return len(w.Out) > 0 && !w.writing && w.Err == nil }

// Flush writes what is collected, unless another goroutine is at it and does it for
// us. Others that have something to send at this moment get to add it first: one
// write for all of them.
func (w *Writer) Flush() {
	w.Lock()
	defer w.Unlock()
	if !w.DueLocked() {
		return
	}
	w.writing = true
	if w.Active > 1 {
		w.Unlock()
		runtime.Gosched()
		w.Lock()
	}
	w.write(w.rounds)
}

// FlushAsideLocked has what is collected written by another goroutine, for a caller
// that must not wait for the peer.
func (w *Writer) FlushAsideLocked() {
	if w.DueLocked() {
		w.sink.PassLocked()
	}
}

// WriteAsideLocked starts a goroutine that writes what is collected.
func (w *Writer) WriteAsideLocked() {
	w.writing = true
	go func() {
		defer w.Guard()
		w.Lock()
		defer w.Unlock()
		w.write(w.rounds)
	}()
}

// Guard is deferred by goroutines of the connection that have no caller to recover: after a
// panic it ends the connection instead of the process.
func (w *Writer) Guard() {
	if v := recover(); v != nil {
		w.sink.Broke(v)
	}
}

// WriteLocked writes what is collected and reports true, or false if there is nothing
// to write or another goroutine is at it. It does not hold the lock meanwhile.
func (w *Writer) WriteLocked() bool {
	if !w.DueLocked() {
		return false
	}
	w.writing = true
	w.write(w.rounds)
	return true
}

// FinishLocked returns when all that was collected is written, or nothing can be. It
// does not hold the lock meanwhile.
func (w *Writer) FinishLocked() {
	for w.Err == nil {
		if w.writing {
			done := make(chan struct{})
			w.written = done
			w.Unlock()
			<-done
			w.Lock()
			continue
		}
		if len(w.Out) == 0 {
			return
		}
		w.writing = true
		w.write(int(^uint(0) >> 1))
	}
}

// EndLocked lets nothing more be written, for the reason err.
func (w *Writer) EndLocked(err error) {
	w.Err = err
	GiveOut(w.Out, w.keep)
	w.Out = nil
}

// StopLocked prevents further writes, and reports whether none is in progress.
func (w *Writer) StopLocked() (idle bool) {
	idle = !w.writing
	w.writing = true
	GiveOut(w.Out, w.keep)
	w.Out = nil
	return idle
}

// write writes what is collected, at most so many times, and passes on what is left.
// The lock is held, but not while writing.
func (w *Writer) write(limit int) {
	w.writeAtMost(limit)
	w.FlushAsideLocked()
}

// writeAtMost leaves the lock held and the writer at rest, whatever panics below it: who
// ends the connection for that needs both.
func (w *Writer) writeAtMost(limit int) {
	defer w.restLocked()
	for ; limit > 0 && len(w.Out) > 0 && w.Err == nil; limit-- {
		b := w.Out
		w.Out = nil
		if err := w.writeUnlocked(b); err != nil {
			w.sink.FailedLocked(err)
			return
		}
		w.sink.WroteLocked()
	}
}

// writeUnlocked writes b while the lock is not held.
func (w *Writer) writeUnlocked(b []byte) error {
	w.Unlock()
	defer w.Lock()
	err := w.sink.WriteNow(b)
	GiveOut(b, w.keep)
	return err
}

// restLocked records that no goroutine is writing, and wakes the waiter for that.
func (w *Writer) restLocked() {
	w.writing = false
	if w.written != nil {
		close(w.written)
		w.written = nil
	}
}
