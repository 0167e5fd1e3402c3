package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate/internal/store"
)

// ErrClosed is returned to subscribers when the log was closed.
var ErrClosed = errors.New("the log of events is closed")

// Subscription reads the log forward. It holds nothing that has to be closed, and
// belongs to one goroutine.
type Subscription struct {
	log    *Log
	filter Filter
	at     uint64   // position in the log's memory
	replay []*Event // to be returned first
	after  ID       // events up to here were returned or are filtered out
	begun  bool
}

// Subscribe returns a subscription to events after an id, which may have been kept
// before this process was started. An id below 0 starts with the next event.
func (l *Log) Subscribe(f Filter, after ID) *Subscription {
	s := &Subscription{log: l, filter: f, after: after}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.at = l.mu.sent
	if after < 0 {
		s.begun, s.after = true, l.mu.last
	}
	return s
}

// Next returns the next event, which may be a gap, and waits for it until ctx is
// done. The error is ctx's, or ErrClosed.
func (s *Subscription) Next(ctx context.Context) (*Event, error) {
	if !s.begun {
		s.begun = true
		s.catchUp(ctx)
	}
	for {
		if e := s.fromReplay(); e != nil {
			return e, nil
		}
		e, changed, err := s.step()
		if e != nil || err != nil {
			return e, err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Subscription) fromReplay() *Event {
	for len(s.replay) > 0 {
		e := s.replay[0]
		s.replay = s.replay[1:]
		if e.Gap() || e.ID > s.after && s.filter.Matches(e.Type) {
			s.after = max(s.after, e.ID)
			return e
		}
	}
	return nil
}

// step looks at one event in memory. It returns what to wait for when there is none.
func (s *Subscription) step() (*Event, <-chan struct{}, error) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.sent-s.at > kept {
		missed := l.mu.sent - s.at - kept
		s.at = l.mu.sent - kept
		return gap(l.mu.recent[s.at%kept].ID-1, missed), nil, nil
	}
	if s.at == l.mu.sent {
		if l.mu.closed {
			return nil, nil, ErrClosed
		}
		return nil, l.mu.changed, nil
	}
	e := l.mu.recent[s.at%kept]
	s.at++
	if e.ID <= s.after || !s.filter.Matches(e.Type) {
		return nil, nil, nil
	}
	s.after = e.ID
	return e, nil, nil
}

// gap returns the event in place of missed ones, 0 if their number is unknown.
func gap(at ID, missed uint64) *Event {
	data, _ := json.Marshal(struct {
		Missed uint64 `json:"missed"`
	}{missed})
	return &Event{ID: at, Type: gapType, Level: Warning, Object: "events", Text: "some events are not shown here", Data: data,
		Time: time.Now().UTC().Truncate(time.Microsecond)}
}

// catchUp finds the events after the id that the subscriber has seen: in memory as far
// as that reaches back, else in the store.
func (s *Subscription) catchUp(ctx context.Context) {
	l := s.log
	l.mu.Lock()
	oldest := l.mu.sent - min(l.mu.sent, kept)
	inMemory := l.mu.sent > oldest && l.mu.recent[oldest%kept].ID <= s.after || s.after == l.mu.last
	boundary := l.mu.last + 1
	if l.mu.sent > oldest {
		boundary = l.mu.recent[oldest%kept].ID
	}
	s.at = oldest
	l.mu.Unlock()
	if inMemory {
		return
	}
	found, whole := l.before(ctx, boundary, s.after)
	if !whole {
		found = append(found, gap(s.after, 0))
	}
	slices.Reverse(found)
	s.replay = found
}

// before returns kept events with ids below boundary and above after, newest first,
// and whether there is none missing between them and after.
func (l *Log) before(ctx context.Context, boundary, after ID) (found []*Event, whole bool) {
	at := store.Sequence(0)
	for len(found) < maxReplay {
		page, err := l.store.Page(ctx, store.StreamEvents, at, store.MaxPage)
		if err != nil || len(page) == 0 {
			// a subscriber from the very beginning has missed nothing that is kept
			return found, err == nil && after == 0
		}
		for _, r := range page {
			e, ok := Decode(r.Data)
			switch {
			case !ok || e.ID >= boundary:
				continue
			case e.ID <= after:
				return found, true
			}
			found = append(found, e)
		}
		at = page[len(page)-1].Sequence
	}
	return found, false
}

// Page returns kept events of a filter before an id, newest first, at most n of them
// (1 to store.MaxPage). Before 0 means from the newest on.
func (l *Log) Page(ctx context.Context, f Filter, before ID, n int) ([]*Event, error) {
	n = min(max(n, 1), store.MaxPage)
	var found []*Event
	at := store.Sequence(0)
	for range maxReplay / store.MaxPage * 10 {
		page, err := l.store.Page(ctx, store.StreamEvents, at, store.MaxPage)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for _, r := range page {
			e, ok := Decode(r.Data)
			if ok && (before == 0 || e.ID < before) && f.Matches(e.Type) {
				if found = append(found, e); len(found) == n {
					return found, nil
				}
			}
		}
		if len(page) < store.MaxPage {
			break
		}
		at = page[len(page)-1].Sequence
	}
	return found, nil
}
