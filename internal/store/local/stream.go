package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"headgate/internal/event"
	"headgate/internal/store"
)

// trimmed is how many records too many a commit removes at most, so that none is slow.
const trimmed = 128

// fill is how full pages get that are only ever added to. The default leaves half of
// each empty.
const fill = 0.9

// append adds one record to its stream, and removes a few that are too old or too
// many.
func (m *making) append(tx *bbolt.Tx, r store.Record) (store.Sequence, error) {
	stream, err := tx.Bucket([]byte(bucketStreams)).CreateBucketIfNotExists([]byte(r.Stream))
	if err != nil {
		return 0, err
	}
	stream.FillPercent = fill
	n, err := stream.NextSequence()
	if err != nil {
		return 0, err
	}
	key := number(n)
	if err := stream.Put(key, encodeRecord(key, m.now, r.Data)); err != nil {
		return 0, err
	}
	return store.Sequence(n), trim(stream, r.Stream, n, m.now)
}

// trim removes records that are not kept any more.
func trim(stream *bbolt.Bucket, name string, last uint64, now time.Time) error {
	age, count := store.Retention(name)
	cursor := stream.Cursor()
	k, v := cursor.First()
	for range trimmed {
		if k == nil || len(v) < recordHead {
			return nil
		}
		tooMany := last-binary.BigEndian.Uint64(k) >= uint64(count)
		if !tooMany && now.Sub(moment(binary.BigEndian.Uint64(v[5:]))) <= age {
			return nil
		}
		if err := stream.Delete(bytes.Clone(k)); err != nil {
			return err
		}
		k, v = cursor.First()
	}
	return nil
}

// Append adds records to a stream: see store.Store.
func (s *Store) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	c := store.Change{Append: make([]store.Record, len(records))}
	for i, data := range records {
		c.Append[i] = store.Record{Stream: stream, Data: data}
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.changeable(ctx); err != nil {
		return 0, err
	}
	if err := s.make(&making{s: s, change: c, now: s.Time()}); err != nil {
		return 0, err
	}
	var last store.Sequence
	err := s.viewOnce(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(bucketStreams)).Bucket([]byte(stream)); b != nil {
			last = store.Sequence(b.Sequence())
		}
		return nil
	})
	return last, err
}

// Page returns records, the newest first: see store.Store.
func (s *Store) Page(ctx context.Context, stream string, before store.Sequence, n int) (list []store.Record, err error) {
	if err := store.CheckName(stream); err != nil {
		return nil, err
	}
	n = min(max(n, 1), store.MaxPage)
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		list = nil
		b := tx.Bucket([]byte(bucketStreams)).Bucket([]byte(stream))
		if b == nil {
			return nil
		}
		cursor := b.Cursor()
		k, v := cursor.Last()
		if before != 0 {
			if k, _ = cursor.Seek(number(uint64(before))); k == nil {
				k, v = cursor.Last()
			} else {
				k, v = cursor.Prev()
			}
		}
		for ; k != nil && len(list) < n; k, v = cursor.Prev() {
			r, err := decodeRecord(stream, k, v)
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// tellRestored records in the events that an older copy is in place, and brings the
// revision above those that were given since.
func (s *Store) tellRestored(tx *bbolt.Tx, damage error, aside, from string) error {
	if err := raise(tx, 0); err != nil {
		return err
	}
	now := s.Time()
	if from == "none" {
		from = ""
	}
	e, err := event.Draft(event.StoreRestored{Cause: fmt.Sprint(damage), Aside: aside, From: from})
	if err != nil {
		return err
	}
	e.ID, e.Time = event.ID(now.UnixMicro()), now.UTC()
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	m := &making{s: s, now: now}
	_, err = m.append(tx, store.Record{Stream: store.StreamEvents, Data: data})
	return err
}
