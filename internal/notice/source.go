package notice

import (
	"context"
	"slices"
	"time"

	"headgate/internal/event"
	"headgate/internal/store"
)

// source is where a queue has its events from: an *event.Subscription, or one of this file.
type source interface {
	// Next returns the next event and waits for it until ctx ends.
	Next(ctx context.Context) (*event.Event, error)
}

// openSource returns the events after those that the queue has looked at.
func (h *hook) openSource() source {
	switch {
	case h.group != nil:
		return &stream{h: h}
	case h.sender.Node != "":
		return unwritten{h}
	}
	return h.sender.Events.Subscribe(h.Filter, h.after())
}

// unwritten is the events of this machine that cannot be written to the shared store.
type unwritten struct{ h *hook }

func (u unwritten) Next(ctx context.Context) (*event.Event, error) {
	tick := time.NewTicker(claimEvery)
	defer tick.Stop()
	for {
		if e := u.h.sender.Events.Claim(u.h.Filter, u.h.place()); e != nil {
			return e, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stream is the events of all machines in the order of the store.
type stream struct {
	h    *hook
	read []store.Record // and not looked at yet, the oldest first
}

func (s *stream) Next(ctx context.Context) (*event.Event, error) {
	for {
		for len(s.read) > 0 {
			r := s.read[0]
			s.read = s.read[1:]
			if e := s.h.passRecord(r); e != nil {
				return e, nil
			}
		}
		more, err := s.fetch(ctx)
		if err == nil && more {
			continue
		}
		timer := time.NewTimer(s.h.sender.readEvery)
		select {
		case <-timer.C: // also after an error: without the store, the lease is lost soon
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// passRecord moves the place to a record. It returns the event in it if the queue has to send that.
func (h *hook) passRecord(r store.Record) *event.Event {
	h.mu.Lock()
	h.mu.state.Place = r.Sequence
	h.mu.Unlock()
	e, ok := event.Decode(r.Data)
	switch {
	case !ok, !h.Filter.Matches(e.Type),
		e.Node == "" && e.Type != event.StoreRestoredType, // of a release whose machines send their own events
		slices.Contains(e.Claimed, h.place()):
		h.group.mu.Lock()
		behind := r.Sequence > h.group.mu.saved+maxUnsaved
		h.group.mu.Unlock()
		if behind {
			h.save()
		}
		return nil
	}
	e.Claimed = nil
	return e
}

// fetch reads the records after the place of the queue. It reports whether something has changed.
func (s *stream) fetch(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	st, h := s.h.sender.Store, s.h
	newest, err := st.Page(ctx, store.StreamEvents, 0, 1)
	if err != nil || len(newest) == 0 {
		return false, err
	}
	h.mu.Lock()
	last, place := newest[0].Sequence, h.mu.state.Place
	h.mu.Unlock()
	if last <= place {
		if last < place { // the store was set back
			h.mu.Lock()
			h.mu.state.Place = last
			h.mu.Unlock()
		}
		return false, nil
	}
	page, err := st.Page(ctx, store.StreamEvents, place+1+maxRead, maxRead)
	if err != nil {
		return false, err
	}
	missed := min(maxRead, last-place) // of which none is kept
	for _, r := range slices.Backward(page) {
		if r.Sequence > place {
			s.read = append(s.read, r)
		}
	}
	if len(s.read) > 0 {
		missed = s.read[0].Sequence - place - 1
	}
	h.mu.Lock()
	h.mu.state.Missed += uint64(missed)
	h.mu.state.Place += missed
	h.mu.Unlock()
	return true, nil
}
