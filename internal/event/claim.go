package event

import (
	"errors"
	"slices"

	"headgate/internal/store"
)

// Where several machines share the store, one of them sends the events of all from there. What
// cannot be written there, because the store is away, is sent by the machine that it happened on.
// It claims the event for a queue before: what is written later says so, and is not sent again.

// Claim returns the oldest event of a filter that waits because the store is away, and that this
// queue has not claimed yet; nil for none. It must be sent by the caller. An event that is
// being written waits until it is known whether that fails.
func (l *Log) Claim(f Filter, queue string) *Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.away || l.mu.closed {
		return nil
	}
	for _, e := range l.mu.waiting[min(l.mu.writing, len(l.mu.waiting)):] {
		if !f.Matches(e.Type) || slices.Contains(l.mu.claimed[e.ID], queue) {
			continue
		}
		if l.mu.claimed == nil {
			l.mu.claimed = map[ID][]string{}
		}
		l.mu.claimed[e.ID] = append(slices.Clip(l.mu.claimed[e.ID]), queue)
		return e
	}
	return nil
}

// wrote notes how a write ended. After an answer that was lost, the events may be in the store:
// they are not claimed.
func (l *Log) wrote(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.away = errors.Is(err, store.ErrUnavailable)
	if err != nil {
		l.mu.writing = 0
	}
}

// withClaimsLocked returns events as they are kept.
func (l *Log) withClaimsLocked(batch []*Event) []*Event {
	if len(l.mu.claimed) == 0 {
		return batch
	}
	batch = slices.Clone(batch)
	for i, e := range batch {
		if queues := l.mu.claimed[e.ID]; queues != nil {
			kept := *e
			kept.Claimed = queues
			batch[i] = &kept
		}
	}
	return batch
}
