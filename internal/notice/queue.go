package notice

import (
	"context"
	"errors"
	"strings"
	"time"

	"headgate/internal/event"
)

func (h *hook) run(ctx context.Context) {
	defer close(h.done)
	h.sendAll(ctx)
}

// sendAll sends events until ctx ends: first those that wait and are due, then new ones. A
// receiver that is not reached pauses all of them; one that refuses a message only that.
func (h *hook) sendAll(ctx context.Context) {
	var sub source
	for ctx.Err() == nil {
		h.takeRequests()
		h.release()
		if wait := h.pausedFor(); wait > 0 {
			sub = nil // what comes meanwhile is read from the log afterwards
			h.rest(ctx, wait)
			continue
		}
		if l, ok := h.due(); ok {
			h.try(ctx, l)
			continue
		}
		if sub == nil {
			sub = h.openSource()
		}
		if !h.next(ctx, sub) {
			return
		}
	}
}

// rest waits for d, or until the queue is woken.
func (h *hook) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.wake:
	case <-ctx.Done():
	}
}

func (h *hook) pausedFor() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.mu.state.PausedUntil)
}

func (h *hook) after() event.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.state.After
}

// due removes the first waiting message that is due and returns it.
func (h *hook) due() (Delivery, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for i, l := range h.mu.state.Waiting {
		if !l.Due.After(now) {
			h.mu.state.Waiting = append(h.mu.state.Waiting[:i:i], h.mu.state.Waiting[i+1:]...)
			return l, true
		}
	}
	return Delivery{}, false
}

// next waits for an event and sends it. It returns false when there will be none.
func (h *hook) next(ctx context.Context, sub source) bool {
	wait, cancel := context.WithTimeout(ctx, h.untilDue())
	ended := make(chan struct{})
	// The goroutine ends before this returns: later it would consume a wake-up that is
	// meant for the next call.
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-h.wake:
			cancel()
		case <-wait.Done():
		}
	}()
	e, err := sub.Next(wait)
	switch {
	case errors.Is(err, event.ErrClosed):
		<-ctx.Done()
		return false
	case err != nil:
		return ctx.Err() == nil
	case e.Gap():
		h.mu.Lock()
		h.mu.state.Missed++
		h.mu.Unlock()
		return true
	}
	h.mu.Lock()
	h.mu.state.After = e.ID
	h.mu.Unlock()
	if e.Object == h.Kind.Object()+" "+h.Name && strings.HasPrefix(e.Type, h.Kind.Object()+".") {
		return true // a queue does not report its own failures to the receiver that fails
	}
	if h.sender.Node != "" && e.Adopted() {
		return true // the machine that made the change has reported it
	}
	h.arrive(ctx, e)
	return true
}

// arrive sends an event, or holds it for a message with others.
func (h *hook) arrive(ctx context.Context, e *event.Event) {
	c, now := h.Notice, time.Now()
	if c != nil {
		if !c.accepts(e.Level) {
			return
		}
		if at := c.sendAt(now, h.lastMessage, h.sender.spacing, e.Level); at.After(now) {
			h.hold(e, at)
			return
		}
	}
	h.lastMessage = now
	h.try(ctx, Delivery{Event: e, First: e.Time})
}

// hold keeps an event until a time at the latest. It is not saved: after a restart the
// event is read from the log again.
func (h *hook) hold(e *event.Event, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := &h.mu.state
	if len(st.Held) >= maxHeld || size(st.Waiting)+size(st.Dead)+sizeOf(st.Held) > maxKept {
		st.Omitted++
	} else {
		st.Held = append(st.Held, e)
	}
	if st.Release.IsZero() || at.Before(st.Release) {
		st.Release = at
	}
}

// release makes one message of the events that were held, when it is due.
func (h *hook) release() {
	h.mu.Lock()
	st, now := &h.mu.state, time.Now()
	if len(st.Held) == 0 || now.Before(st.Release) {
		h.mu.Unlock()
		return
	}
	st.Waiting = append(st.Waiting, Delivery{Event: st.Held[0], More: st.Held[1:], Omitted: st.Omitted, First: now, Due: now})
	st.Held, st.Omitted, st.Release = nil, 0, time.Time{}
	over := h.trimLocked()
	h.mu.Unlock()
	h.lastMessage = now
	for _, l := range over {
		h.moveToDeadLetters(l)
	}
	h.save()
}

// untilDue returns the time until something that waits is due.
func (h *hook) untilDue() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := idle
	if st := &h.mu.state; len(st.Held) > 0 {
		wait = min(wait, max(time.Until(st.Release), time.Millisecond))
	}
	for _, l := range h.mu.state.Waiting {
		wait = min(wait, max(time.Until(l.Due), time.Millisecond))
	}
	return wait
}

// try sends a message once and keeps what came of it.
func (h *hook) try(ctx context.Context, l Delivery) {
	if !h.maySend() {
		return // what another machine goes on with is in the store
	}
	if time.Since(l.First) > maxAge {
		h.moveToDeadLetters(l)
		h.save()
		return
	}
	o := h.deliver(ctx, &l)
	if ctx.Err() != nil && o.Err != nil {
		// The lease was lost, or the process stops: the message is sent after the next start.
		h.mu.Lock()
		h.mu.state.Waiting = append(h.mu.state.Waiting, l)
		h.mu.Unlock()
		h.save()
		return
	}
	h.mu.Lock()
	st := &h.mu.state
	st.LastTry, st.LastStatus, st.LastError = time.Now().UTC(), o.Status, ""
	if o.Err == nil {
		st.Sent++
		st.Failures, st.PausedUntil = 0, time.Time{}
		h.mu.Unlock()
		h.save()
		return
	}
	l.Attempts++
	l.Error, st.LastError = o.Err.Error(), o.Err.Error()
	wait := max(h.sender.pause(l.Attempts-1), o.RetryAfter)
	if o.Rejected {
		st.Failures = 0 // the receiver works; it rejects this message
	} else {
		wait = max(h.sender.pause(st.Failures), o.RetryAfter)
		st.Failures++
		st.PausedUntil = time.Now().Add(wait)
	}
	l.Due = time.Now().Add(wait)
	st.Waiting = append(st.Waiting, l)
	over := h.trimLocked()
	h.mu.Unlock()
	for _, l := range over {
		h.moveToDeadLetters(l)
	}
	h.save()
}

// deliver sends a message once.
func (h *hook) deliver(ctx context.Context, l *Delivery) Outcome {
	if h.Notice == nil {
		return h.sender.sendWebhook(ctx, &h.Hook, h.key, l.Event)
	}
	events := append([]*event.Event{l.Event}, l.More...)
	return h.sender.deliver(ctx, h.Notice, &Message{Events: events, Omitted: l.Omitted, Instance: h.sender.Instance})
}

// trimLocked removes and returns the oldest waiting messages that are too many to keep.
func (h *hook) trimLocked() (over []Delivery) {
	st := &h.mu.state
	for len(st.Waiting) > maxWaiting || len(st.Waiting) > 1 && size(st.Waiting)+size(st.Dead) > maxKept {
		over = append(over, st.Waiting[0])
		st.Waiting = st.Waiting[1:]
	}
	return over
}

// size returns the approximate size of deliveries in bytes.
func size(deliveries []Delivery) int {
	n := 0
	for _, l := range deliveries {
		n += len(l.Error) + 200 + sizeOf(l.More) + sizeOf([]*event.Event{l.Event})
	}
	return n
}

// sizeOf returns the approximate size of events in bytes.
func sizeOf(events []*event.Event) int {
	n := 0
	for _, e := range events {
		n += len(e.Data) + len(e.Text) + 200
	}
	return n
}

// moveToDeadLetters ends the attempts for a message and reports it.
func (h *hook) moveToDeadLetters(l Delivery) {
	h.mu.Lock()
	st := &h.mu.state
	l.Due = time.Time{}
	st.Dead = append(st.Dead, l)
	for len(st.Dead) > maxDead || len(st.Dead) > 1 && size(st.Waiting)+size(st.Dead) > maxKept {
		st.Dead = st.Dead[1:]
		st.Lost++
	}
	h.mu.Unlock()
	if h.Kind == Notices {
		h.sender.Events.Send(event.NoticeDead{Notice: h.Name, Event: int64(l.Event.ID), Cause: l.Error})
		return
	}
	h.sender.Events.Send(event.WebhookDead{Webhook: h.Name, Event: int64(l.Event.ID), Cause: l.Error})
}
