package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/setting/shown"
	"headgate/internal/store"
)

// writeBatch keeps the oldest events that wait, as many as fit in one commit. They wait on
// if it fails.
func (l *Log) writeBatch(timeout time.Duration) error {
	l.mu.Lock()
	n := min(len(l.mu.waiting), maxBatch)
	batch := l.withClaimsLocked(l.mu.waiting[:n:n])
	dropped := l.mu.dropped
	l.mu.writing = n
	l.mu.Unlock()
	if n == 0 {
		return nil
	}
	records := l.records(batch)
	n = len(records)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := l.append(ctx, records)
	l.wrote(err)
	if err != nil {
		if !errors.Is(err, store.ErrClosed) {
			l.app.Warn("events cannot be kept and wait in memory", "waiting", n, "error", err)
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.mu.waiting[:n] {
		delete(l.mu.claimed, e.ID)
	}
	l.mu.waiting = append([]*Event(nil), l.mu.waiting[n:]...)
	l.mu.writing = 0
	if dropped > 0 {
		l.app.Warn("events were not kept: the store was away for too long", "dropped", dropped)
		l.mu.dropped -= dropped
	}
	return nil
}

// records returns the records of the first events of a batch: at least one, and no more
// than have maxBytes in all.
func (l *Log) records(batch []*Event) [][]byte {
	var records [][]byte
	size := 0
	for _, e := range batch {
		data, err := json.Marshal(e)
		if err != nil {
			data = l.stub(e, err)
		}
		if size += len(data); size > maxBytes && len(records) > 0 {
			break
		}
		records = append(records, data)
	}
	return records
}

// append keeps records. Those that the store refuses as too large are tried one by one,
// and one that is too large alone is replaced by one that says so: no event may keep
// others from being kept.
func (l *Log) append(ctx context.Context, records [][]byte) error {
	_, err := l.store.Append(ctx, store.StreamEvents, records)
	switch {
	case !errors.Is(err, store.ErrTooLarge):
		return err
	case len(records) > 1:
		for i := range records {
			if err := l.append(ctx, records[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	e, ok := Decode(records[0])
	if !ok {
		e = &Event{}
	}
	_, err = l.store.Append(ctx, store.StreamEvents, [][]byte{l.stub(e, err)})
	if errors.Is(err, store.ErrTooLarge) {
		l.app.Error("event is not kept", "event", e.Type, "error", err)
		return nil
	}
	return err
}

// stub returns the record of an event that cannot be kept whole: it says why, and has no
// data.
func (l *Log) stub(e *Event, cause error) []byte {
	l.app.Error("event is kept without its data", "event", e.Type, "id", int64(e.ID), "error", cause)
	bare := *e
	bare.Data = json.RawMessage("{}")
	bare.Text = fmt.Sprintf("%s: not kept whole: %v", e.Type, cause)
	bare.Object, bare.Text = shown.Short(bare.Object, maxText), shown.Short(bare.Text, maxText)
	data, _ := json.Marshal(&bare) // plain texts
	return data
}
