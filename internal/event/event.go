// Package event is the event log: one typed log that the API streams, webhooks send and
// operators read. Send accepts a payload of the table; Subscribe and Page return
// events.
//
// Send never waits and never fails. Events are stored in the background and in order; while
// the store is unavailable they are still delivered to subscribers, and stored later as far
// as the queue allows. A slow subscriber does not delay others: it gets a gap event.
//
// It does not detect events: the packages that watch servers or ports send them.
package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/setting/shown"
	"headgate/internal/store"
)

// The bounds of a log.
const (
	// kept is how many events are in memory for subscribers that are behind.
	kept = 1024
	// maxWaiting is how many events wait for the store.
	maxWaiting = 4096
	// maxBatch is how many events are kept in one commit.
	maxBatch = 32
	// maxReplay is how many events are looked at to go on after an id.
	maxReplay = 10_000
	// maxText bounds each text of an event in bytes, maxList each list of texts.
	maxText = 512
	maxList = 128
	// maxBytes is how many bytes are kept in one commit, unless one event has more.
	maxBytes = store.MaxChange / 2
	// storeTimeout is how long the store has for a batch, and closeTimeout for what
	// waits at the end.
	storeTimeout = 10 * time.Second
	closeTimeout = 3 * time.Second
	// firstRetry and lastRetry bound the pauses after a store that failed.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// gapType is the type of the event in place of missed ones. It has no payload and is never
// sent.
const gapType = "gap"

// appliedType is the type of ConfigApplied.
const appliedType = "config.applied"

// StoreRestoredType is the type of StoreRestored, which the store records itself.
const StoreRestoredType = "store.restored"

// ID is the place of an event. IDs grow, over restarts too; they are no sequence
// without holes. 0 is before the first.
type ID int64

// Event is one that happened. It is not changed once it was sent.
type Event struct {
	// ID is its place.
	ID ID `json:"id"`
	// Type is the name of its kind, or "gap".
	Type string `json:"type"`
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Level is how much it wants to be seen.
	Level Level `json:"level"`
	// Object is what it is about: "port web".
	Object string `json:"object"`
	// Text is a sentence for people.
	Text string `json:"text"`
	// Data is the payload.
	Data json.RawMessage `json:"data"`
	// Node is the machine that it happened on, "" where no others share the log.
	Node string `json:"node,omitempty"`
	// Claimed are the queues that this machine has sent it to itself: see Claim. Only what is kept
	// in the store has them.
	Claimed []string `json:"claimed,omitempty"`
}

// Adopted reports whether e is the successful end of a change that another machine made, which
// has sent an event of its own.
func (e *Event) Adopted() bool {
	about := Config{}
	return e.Type == appliedType && json.Unmarshal(e.Data, &about) == nil && about.Adopted
}

// Gap reports whether e represents events that were missed.
func (e *Event) Gap() bool { return e.Type == gapType }

// Sender is for packages that only send events. *Log implements it.
type Sender interface{ Send(Payload) }

// Log is the one log of events. Its methods may be called by several goroutines at
// once.
type Log struct {
	store store.Store
	app   *slog.Logger
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
	every atomic.Int64 // nanoseconds: see Spread

	mu struct {
		sync.Mutex
		last    ID
		recent  []*Event // a ring; the newest is before position
		sent    uint64   // how many were put into recent in all
		changed chan struct{}
		waiting []*Event
		writing int             // how many of the first that wait are being written
		claimed map[ID][]string // the queues that have claimed one that waits
		away    bool            // the store could not be reached for the last write
		node    string          // see Share
		dropped uint64
		closed  bool
	}
}

// Open returns the log that is kept in a store. The caller ends it with Close, before
// it closes the store.
func Open(ctx context.Context, st store.Store, app *slog.Logger) (*Log, error) {
	l := &Log{store: st, app: app, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	l.mu.recent = make([]*Event, kept)
	l.mu.changed = make(chan struct{})
	newest, err := st.Page(ctx, store.StreamEvents, 0, 1)
	if err != nil && !errors.Is(err, store.ErrUnavailable) { // identifiers go on with the clock
		return nil, fmt.Errorf("read the newest event: %w", err)
	}
	for _, r := range newest {
		if e, ok := Decode(r.Data); ok {
			l.mu.last = e.ID
		}
	}
	go l.write()
	return l, nil
}

// Share names this machine in its events, where several machines share the store. It is called
// before events are sent.
func (l *Log) Share(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.node = node
}

// Spread sets the interval at which events are saved together. Use it for a shared store, in which
// each write causes work on other machines. Subscribers still get events at once. A crash loses the
// events that were not saved yet. The default is 0.
func (l *Log) Spread(every time.Duration) { l.every.Store(int64(every)) }

// Send adds an event. It does not wait. A nil log ignores it.
func (l *Log) Send(p Payload) {
	if l == nil {
		return
	}
	e, err := Draft(p)
	if err != nil {
		l.app.Error("cannot record an event", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return
	}
	e.ID, e.Node = max(l.mu.last+1, ID(e.Time.UnixMicro())), l.mu.node
	l.mu.last = e.ID
	l.mu.recent[l.mu.sent%kept] = e
	l.mu.sent++
	close(l.mu.changed)
	l.mu.changed = make(chan struct{})
	if len(l.mu.waiting) >= maxWaiting {
		l.mu.dropped++
		return
	}
	l.mu.waiting = append(l.mu.waiting, e)
	l.wakeUp()
}

// Draft returns the event of a payload, with the current time and without an id, to show it
// without sending it. Texts and lists are limited.
func Draft(p Payload) (*Event, error) {
	k, ok := kinds[reflect.TypeOf(p)]
	if !ok {
		return nil, fmt.Errorf("%T is not in the table of events", p)
	}
	p = short(p)
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", k.Type, err)
	}
	object, text := p.about()
	return &Event{Type: k.Type, Level: k.Level, Object: shown.Short(object, maxText), Text: shown.Short(text, maxText), Data: data, Time: time.Now().UTC().Truncate(time.Microsecond)}, nil
}

// Last returns the id of the newest event, 0 if there is none.
func (l *Log) Last() ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.last
}

// Close keeps what waits, for a few seconds at most, and ends all subscriptions.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.mu.closed {
		l.mu.closed = true
		close(l.mu.changed)
		close(l.stop)
	}
	l.mu.Unlock()
	<-l.ended
}

// write keeps events until the log is closed.
func (l *Log) write() {
	defer close(l.ended)
	retry, away := firstRetry, false
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			l.writeLast()
			return
		}
		for {
			err := l.writeBatch(storeTimeout)
			if err != nil {
				if !away && !errors.Is(err, store.ErrClosed) {
					l.Send(StoreUnavailable{Cause: err.Error()}) // readers get it now, the store later
				}
				away = true
				break
			}
			retry, away = firstRetry, false
			if l.waiting() < maxBatch {
				break // what has come meanwhile is kept with what comes in the interval
			}
		}
		if !away {
			if l.waiting() > 0 {
				l.wakeUp()
			}
			select {
			case <-time.After(time.Duration(l.every.Load())):
				continue
			case <-l.stop:
				l.writeLast()
				return
			}
		}
		select {
		case <-time.After(retry):
			retry = min(2*retry, lastRetry)
			l.wakeUp()
		case <-l.stop:
			l.writeLast()
			return
		}
	}
}

func (l *Log) writeLast() {
	deadline := time.Now().Add(closeTimeout)
	for l.waiting() > 0 && time.Now().Before(deadline) {
		if err := l.writeBatch(time.Until(deadline)); err != nil {
			l.app.Error("events are not kept", "error", err)
			return
		}
	}
}

// waiting returns how many events are not kept yet.
func (l *Log) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.waiting)
}

// wakeUp has the writer look for events.
func (l *Log) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Decode reads a record of store.StreamEvents. It reports false if that is no event.
func Decode(data []byte) (*Event, bool) {
	e := &Event{}
	return e, json.Unmarshal(data, e) == nil && e.ID > 0
}
