package notice

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"headgate/internal/event"
	"headgate/internal/store"
)

// An operator may ask any machine to send a dead letter again. If another one sends, the request is
// written into the state of the queue, where that one finds it.

const (
	// maxRequests is how many requests wait for the machine that sends, and maxTries how often one
	// is tried to be written.
	maxRequests = 100
	maxTries    = 10
)

// findRequests wakes the queue if another machine has written something.
func (h *hook) findRequests(ctx context.Context) {
	g := h.group
	e, err := h.sender.Store.Get(ctx, h.place())
	g.mu.Lock()
	found := err == nil && g.mu.ready && e.Revision > g.mu.revision
	g.mu.requests = g.mu.requests || found
	g.mu.Unlock()
	if found {
		h.wakeUp()
	}
}

// takeRequests sends dead letters again that operators want to be sent.
func (h *hook) takeRequests() {
	if h.group == nil {
		return
	}
	g := h.group
	g.mu.Lock()
	is := g.mu.requests
	g.mu.requests = false
	g.mu.Unlock()
	if !is {
		return
	}
	h.takeNewRequests()
	h.mu.Lock()
	h.takeRequestsLocked(h.mu.state.Resend)
	h.mu.Unlock()
	h.save()
}

// takeNewRequests takes the requests that another machine has written into the state.
func (h *hook) takeNewRequests() {
	e, kept, err := h.readShared(context.Background())
	if err != nil {
		return
	}
	g := h.group
	g.mu.Lock()
	newer := e.Revision > g.mu.revision
	if newer {
		g.mu.revision = e.Revision
	}
	g.mu.Unlock()
	if newer {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.takeRequestsLocked(append(h.mu.state.Resend, kept.Resend...))
	}
}

// takeRequestsLocked has dead letters sent again.
func (h *hook) takeRequestsLocked(requests []event.ID) {
	for _, id := range requests {
		_ = h.reviveLocked(id) // it was sent meanwhile, or is not kept any more
	}
	h.mu.state.Resend = nil
}

// requestHere has this machine, which sends for all, send a dead letter again.
func (h *hook) requestHere(id event.ID) error {
	h.mu.Lock()
	err := checkDead(h, &h.mu.state, id)
	if err == nil && len(h.mu.state.Resend) < maxRequests {
		h.mu.state.Resend = append(h.mu.state.Resend, id)
	}
	h.mu.Unlock()
	if err == nil {
		h.group.mu.Lock()
		h.group.mu.requests = true
		h.group.mu.Unlock()
		h.wakeUp()
	}
	return err
}

// requestResend has the machine that sends for all send a dead letter again.
func (h *hook) requestResend(ctx context.Context, id event.ID) error {
	var err error
	for range maxTries {
		var e store.Entry
		var st State
		if e, st, err = h.readShared(ctx); err != nil {
			return err
		}
		if err := checkDead(h, &st, id); err != nil {
			return err
		}
		if !slices.Contains(st.Resend, id) && len(st.Resend) < maxRequests {
			st.Resend = append(st.Resend, id)
		}
		var data []byte
		if data, err = json.Marshal(st); err != nil {
			return err
		}
		_, err = h.sender.Store.Commit(ctx, store.Change{ID: store.NewID(), If: []store.Condition{{Key: h.place(), Revision: e.Revision}}, Put: []store.Entry{{Key: h.place(), Value: data}}})
		if !errors.As(err, new(*store.Conflict)) {
			return err
		}
		h.rest(ctx, stalePause)
	}
	return err
}
