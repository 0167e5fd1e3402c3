package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// Export yields everything: see store.Store. It is read from a copy of one moment in
// memory only as far as entries go; records are read in pages, and those that are added
// meanwhile are left out.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		entries, at, err := s.Snapshot(ctx, "")
		mark := store.Mark{Position: at, Time: s.Time(), Last: map[string]store.Sequence{}}
		if err == nil {
			err = s.view(ctx, func(tx *bbolt.Tx) error { return fillMark(tx, &mark) })
		}
		if err != nil {
			yield(store.Item{}, err)
			return
		}
		if !yield(store.Item{Mark: &mark}, nil) {
			return
		}
		for i := range entries {
			if !yield(store.Item{Entry: &entries[i]}, nil) {
				return
			}
		}
		for name, last := range mark.Last {
			if !s.exportStream(ctx, name, last, yield) {
				return
			}
		}
	}
}

// fillMark reads what an export tells besides entries and records.
func fillMark(tx *bbolt.Tx, mark *store.Mark) error {
	if v := tx.Bucket([]byte(bucketMeta)).Get([]byte(metaToken)); len(v) == 8 {
		mark.Token = binary.BigEndian.Uint64(v)
	}
	streams := tx.Bucket([]byte(bucketStreams))
	return streams.ForEachBucket(func(name []byte) error {
		mark.Last[string(name)] = store.Sequence(streams.Bucket(name).Sequence())
		return nil
	})
}

// exportStream yields the records of a stream, the oldest first. It reports whether more
// is wanted.
func (s *Store) exportStream(ctx context.Context, name string, last store.Sequence, yield func(store.Item, error) bool) bool {
	for after := store.Sequence(0); after < last; {
		page, err := s.pageAfter(ctx, name, after, last)
		if err != nil {
			yield(store.Item{}, err)
			return false
		}
		if len(page) == 0 {
			return true
		}
		for i := range page {
			if !yield(store.Item{Record: &page[i]}, nil) {
				return false
			}
		}
		after = page[len(page)-1].Sequence
	}
	return true
}

// pageAfter returns records after a sequence and up to another, the oldest first.
func (s *Store) pageAfter(ctx context.Context, name string, after, last store.Sequence) (list []store.Record, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		list = nil
		b := tx.Bucket([]byte(bucketStreams)).Bucket([]byte(name))
		if b == nil {
			return nil
		}
		cursor := b.Cursor()
		for k, v := cursor.Seek(number(uint64(after) + 1)); k != nil && len(list) < store.MaxPage; k, v = cursor.Next() {
			r, err := decodeRecord(name, k, v)
			if err != nil || r.Sequence > last {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// errHalf says why nothing is committed until an import is repeated.
var errHalf = errors.New("an import is not finished; repeat it")

// importer writes what another engine has exported, in portions of a commit each.
type importer struct {
	s       *Store
	mark    *store.Mark
	entries []store.Entry
	records []store.Record
	size    int
}

// Import fills the store: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.beginImport(ctx); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	i := &importer{s: s}
	for item, err := range items {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = i.add(item)
		}
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	if err := i.end(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// beginImport marks the store as one that is being filled, and removes what an import
// that was cut off has left. The writer's lock is held.
func (s *Store) beginImport(ctx context.Context) error {
	half := s.half
	s.half = false
	if err := s.writable(ctx); err != nil {
		s.half = half
		return err
	}
	var old []string
	err := s.viewOnce(func(tx *bbolt.Tx) error {
		if revisionOf(tx.Bucket([]byte(bucketMeta))) > 0 && !half {
			return store.ErrNotEmpty
		}
		return tx.Bucket([]byte(bucketEntries)).ForEach(func(k, _ []byte) error {
			old = append(old, string(k))
			return nil
		})
	})
	if err != nil {
		s.half = half
		return err
	}
	s.half = true
	mark := func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket([]byte(bucketStreams)); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte(bucketStreams))
		return errors.Join(err, tx.Bucket([]byte(bucketMeta)).Put([]byte(metaHalf), []byte{1}))
	}
	return s.make(&making{s: s, change: store.Change{Delete: old}, now: s.Time(), byEngine: true, exact: true, also: mark})
}

func (i *importer) add(item store.Item) error {
	switch {
	case item.Mark != nil:
		i.mark = item.Mark
		return nil
	case i.mark == nil:
		return errors.New("it does not begin with a mark")
	case item.Entry != nil:
		if err := store.CheckKey(item.Entry.Key); err != nil {
			return err
		}
		i.entries = append(i.entries, *item.Entry)
		i.size += len(item.Entry.Value)
	case item.Record != nil:
		i.records = append(i.records, *item.Record)
		i.size += len(item.Record.Data)
	}
	if len(i.entries)+len(i.records) >= store.MaxPage || i.size >= store.MaxChange {
		return i.write(nil)
	}
	return nil
}

// write writes a portion.
func (i *importer) write(also func(*bbolt.Tx) error) error {
	records := i.records
	m := &making{s: i.s, change: store.Change{Put: i.entries}, now: i.s.Time(), byEngine: true, exact: true}
	m.also = func(tx *bbolt.Tx) error {
		for _, r := range records {
			if err := putRecord(tx, r); err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(tx)
	}
	i.entries, i.records, i.size = nil, nil, 0
	return i.s.make(m)
}

// putRecord writes a record in its place.
func putRecord(tx *bbolt.Tx, r store.Record) error {
	stream, err := tx.Bucket([]byte(bucketStreams)).CreateBucketIfNotExists([]byte(r.Stream))
	if err != nil {
		return err
	}
	stream.FillPercent = fill
	key := number(uint64(r.Sequence))
	return stream.Put(key, encodeRecord(key, r.Time, r.Data))
}

// end writes the rest, and that it is whole.
func (i *importer) end() error {
	if i.mark == nil {
		return errors.New("it is empty")
	}
	err := i.write(func(tx *bbolt.Tx) error {
		for name, last := range i.mark.Last {
			stream, err := tx.Bucket([]byte(bucketStreams)).CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			if err := stream.SetSequence(uint64(last)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(bucketMeta))
		return errors.Join(meta.Put([]byte(metaToken), number(i.mark.Token)), setPosition(meta, i.mark.Position), meta.Delete([]byte(metaHalf)))
	})
	if err != nil {
		return err
	}
	i.s.half = false
	i.s.feed.restart(i.mark.Position.Revision)
	return nil
}

// Freeze refuses changes: see store.Store.
func (s *Store) Freeze(ctx context.Context, place string) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	was := s.movedTo
	s.movedTo = ""
	if err := s.writable(ctx); err != nil {
		s.movedTo = was
		return err
	}
	err := s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaMoved), bytes.Clone([]byte(place)))
	}})
	if err != nil {
		s.movedTo = was
		return err
	}
	s.movedTo = place
	return nil
}
