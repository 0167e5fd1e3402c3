package notice

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"headgate/internal/store"
)

// Where several machines share a store, each has two queues for a webhook or notice:
//
//   - The group's sends the events of all machines, in the order of the stream in the store. The
//     machine that has the lease with its name reads them from the place in the entry with
//     its name, and moves it under the lease. Nothing is sent while the place cannot be moved, so that
//     the machine that follows repeats one message at most.
//   - The machine's own sends events of this machine that cannot be written to the store because it
//     is away: see event.Log.Claim.

const (
	// leaseTime is for how long a machine sends for all without renewing its lease. Another one
	// follows leaseTime and a third later at the latest.
	leaseTime = 15 * time.Second
	// readEvery is how often the stream is read, and claimEvery how often a machine looks for events
	// that cannot be written.
	readEvery  = time.Second
	claimEvery = 500 * time.Millisecond
	// stalePause is how long to wait for the copy of an entry that another machine has written.
	stalePause = 100 * time.Millisecond
	// maxRead is how many records are read at once, and maxUnsaved how many the place in the store
	// is behind at most.
	maxRead    = 100
	maxUnsaved = 100
)

// group is what the queue of all machines has besides.
type group struct {
	from  store.Sequence // where the stream ended when the queue was started; owned by runGroup
	known bool           // of from

	mu struct {
		sync.Mutex
		lease    *store.Lease   // nil if another machine sends
		ready    bool           // the state is that of all machines
		requests bool           // there may be some to take
		until    time.Time      // until when this machine may act under it
		stop     func()         // ends the work under it
		revision store.Revision // of the entry
		saved    store.Sequence // the place in it
		closing  bool           // the process ends: a save is not repeated
	}
}

// runGroup sends for all machines whenever no other one does, until ctx ends.
func (h *hook) runGroup(ctx context.Context) {
	defer close(h.done)
	for ctx.Err() == nil {
		if h.findEnd(ctx) {
			asked := time.Now()
			l, err := h.acquireLease(ctx)
			switch {
			case err == nil:
				h.sendUnderLease(ctx, l, asked)
			case !errors.As(err, new(*store.Held)) && !isAway(err):
				h.sender.Log.Warn("cannot find out which machine sends the messages of a queue", "queue", h.place(), "error", err)
			}
		}
		h.rest(ctx, h.sender.leaseTime/3)
	}
}

// isAway reports whether an error is that of a store that is away or that another process has taken over.
func isAway(err error) bool {
	for _, away := range []error{store.ErrUnavailable, store.ErrClosed, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, away) {
			return true
		}
	}
	return false
}

func (h *hook) acquireLease(ctx context.Context) (*store.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return h.sender.Store.Acquire(ctx, h.place(), h.sender.leaseTime)
}

// findEnd finds out where a new queue begins. It reports false if the store does not answer.
func (h *hook) findEnd(ctx context.Context) bool {
	g := h.group
	if g.known {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	newest, err := h.sender.Store.Page(ctx, store.StreamEvents, 0, 1)
	if err != nil {
		return false
	}
	for _, r := range newest {
		g.from = r.Sequence
	}
	g.known = true
	return true
}

// sendUnderLease sends for all machines until the lease is lost or ctx ends.
func (h *hook) sendUnderLease(ctx context.Context, l *store.Lease, asked time.Time) {
	g := h.group
	held, stop := context.WithCancel(ctx)
	g.mu.Lock()
	g.mu.lease, g.mu.stop, g.mu.closing, g.mu.ready, g.mu.requests = l, stop, false, false, false
	g.mu.Unlock()
	h.extendLease(asked)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		defer stop()
		h.keepLease(held, l)
	})
	ended := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		g.mu.closing = true
		g.mu.Unlock()
	})
	if h.takeOver(held) {
		h.sendAll(held)
	}
	stop()
	renewing.Wait()
	ended()
	h.loseLease()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	_ = l.Release(end) // one that is not released runs out
}

// loseLease ends the work for all machines.
func (h *hook) loseLease() {
	h.group.mu.Lock()
	defer h.group.mu.Unlock()
	h.group.mu.lease, h.group.mu.ready = nil, false
	h.group.mu.stop()
}

// extendLease notes that the lease was renewed.
func (h *hook) extendLease(asked time.Time) {
	h.group.mu.Lock()
	defer h.group.mu.Unlock()
	h.group.mu.until = asked.Add(h.sender.leaseTime * 2 / 3)
}

// maySend reports whether this machine may send a message of the queue. It looks at the clock, as a
// process that was stopped goes on before its timers do.
func (h *hook) maySend() bool {
	if h.group == nil {
		return true
	}
	g := h.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.mu.lease; l != nil && time.Now().Before(g.mu.until) {
		select {
		case <-l.Lost():
		default:
			return true
		}
	}
	g.mu.stop()
	return false
}

// keepLease renews the lease until it is lost or ctx ends.
func (h *hook) keepLease(ctx context.Context, l *store.Lease) {
	tick := time.NewTicker(h.sender.leaseTime / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Lost():
			return
		case <-tick.C:
		}
		asked := time.Now()
		renew, cancel := context.WithTimeout(ctx, h.sender.leaseTime/3)
		if l.Renew(renew) == nil { // an error shows in Lost
			h.extendLease(asked)
		}
		cancel()
		h.findRequests(ctx)
	}
}

// takeOver goes on from where the machine before was. It reports false if it cannot.
func (h *hook) takeOver(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := h.adoptState(ctx)
		switch {
		case err == nil:
			return true
		case errors.As(err, new(*store.Conflict)): // the copy of this machine lacks what the one before has written
		case errors.Is(err, store.ErrUnknownOutcome):
		default:
			if ctx.Err() == nil {
				h.sender.Log.Warn("cannot go on with a queue of all machines", "queue", h.place(), "error", err)
			}
			return false
		}
		h.rest(ctx, stalePause)
	}
	return false
}

// adoptState reads the state, and writes it with the name of this machine: so it is known to be the newest.
func (h *hook) adoptState(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	st, g := State{After: h.sender.Events.Last(), Place: h.group.from}, h.group
	e, err := h.sender.Store.Get(ctx, h.place())
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	default:
		kept := State{}
		if err := json.Unmarshal(e.Value, &kept); err != nil {
			h.sender.Log.Error("cannot read the state of a queue; it starts with the next event", "queue", h.place(), "error", err)
			break
		}
		if kept.Node == "" {
			kept.Place = st.Place // it was written by a machine that shared nothing
		}
		st = kept
	}
	st.Node, st.PausedUntil, st.Failures = h.sender.Node, time.Time{}, 0
	h.mu.Lock()
	h.mu.state = st
	h.takeRequestsLocked(st.Resend)
	h.mu.Unlock()
	g.mu.Lock()
	g.mu.revision = e.Revision
	g.mu.Unlock()
	if err := h.commitState(ctx, store.NewID()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.ready = true
	return nil
}

// commitState writes the state, if no one else has written it and this machine has the lease. Only
// the goroutine of the queue writes it, between two messages: so a place is that of what was sent.
func (h *hook) commitState(ctx context.Context, id store.ID) error {
	g := h.group
	h.mu.Lock()
	place := h.mu.state.Place
	data, err := json.Marshal(h.mu.state)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	g.mu.Lock()
	l, revision := g.mu.lease, g.mu.revision
	g.mu.Unlock()
	if l == nil {
		return store.ErrFenced
	}
	at, err := h.sender.Store.Commit(ctx, store.Change{ID: id, If: []store.Condition{{Key: h.place(), Revision: revision}},
		Put: []store.Entry{{Key: h.place(), Value: data}}, Under: l})
	if err == nil {
		g.mu.Lock()
		g.mu.revision, g.mu.saved = at, place
		g.mu.Unlock()
	}
	return err
}

// saveGroup writes the state, and repeats that while this machine may act: before the place is
// moved, no other message is sent.
func (h *hook) saveGroup() {
	g := h.group
	for id := store.NewID(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		err := h.commitState(ctx, id)
		cancel()
		if err == nil {
			return
		}
		if errors.As(err, new(*store.Conflict)) {
			h.takeNewRequests()
			id = store.NewID()
		}
		g.mu.Lock()
		closing := g.mu.closing
		g.mu.Unlock()
		if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrClosed) || closing || !h.maySend() {
			h.sender.Log.Warn("cannot save the state of a queue; the machine that follows may send a message twice", "queue", h.place(), "error", err)
			h.loseLease()
			return
		}
		time.Sleep(stalePause)
	}
}

// readShared returns the state that the machine that sends has written.
func (h *hook) readShared(ctx context.Context) (store.Entry, State, error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	st := State{}
	e, err := h.sender.Store.Get(ctx, h.place())
	if errors.Is(err, store.ErrNotFound) {
		return store.Entry{}, st, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &st)
	}
	return e, st, err
}

// leads reports whether this machine sends for all.
func (h *hook) leads() bool {
	h.group.mu.Lock()
	defer h.group.mu.Unlock()
	return h.group.mu.ready
}

// combinedState returns the state of both queues of this machine. Without the store, that of its own.
func (h *hook) combinedState(ctx context.Context) State {
	own, all := h.state(), State{}
	if h.shared.leads() {
		all = h.shared.state()
	} else if _, st, err := h.shared.readShared(ctx); err == nil {
		all = st
	}
	all.Sent, all.Missed, all.Lost = all.Sent+own.Sent, all.Missed+own.Missed, all.Lost+own.Lost
	all.Waiting, all.Dead = append(all.Waiting, own.Waiting...), append(all.Dead, own.Dead...)
	all.Held, all.Omitted = append(all.Held, own.Held...), all.Omitted+own.Omitted
	if own.LastTry.After(all.LastTry) {
		all.LastTry, all.LastStatus, all.LastError = own.LastTry, own.LastStatus, own.LastError
	}
	return all
}
