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
	return store.ExportFrom(ctx, source{s})
}

// source is what an export reads.
type source struct{ *Store }

// Mark reads what an export has besides entries and records.
func (s source) Mark(ctx context.Context, mark *store.Mark) error {
	mark.Time = s.Time()
	return s.view(ctx, func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte(bucketMeta)).Get([]byte(metaToken)); len(v) == 8 {
			mark.Token = binary.BigEndian.Uint64(v)
		}
		streams := tx.Bucket([]byte(bucketStreams))
		return streams.ForEachBucket(func(name []byte) error {
			mark.Last[string(name)] = store.Sequence(streams.Bucket(name).Sequence())
			return nil
		})
	})
}

// Records returns records after a sequence and up to another, the oldest first.
func (s source) Records(ctx context.Context, name string, after, last store.Sequence) (list []store.Record, err error) {
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

// Import fills the store: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	err := s.beginImport(ctx)
	var mark *store.Mark
	if err == nil {
		mark, err = store.ImportPortions(ctx, items, s.writePortion)
	}
	if err == nil {
		err = s.endImport(mark)
	}
	if err != nil {
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

// writePortion writes a part of an import. The writer's lock is held.
func (s *Store) writePortion(p *store.Portion) error {
	return s.make(&making{s: s, change: store.Change{Put: p.Entries}, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		for _, r := range p.Records {
			if err := putRecord(tx, r); err != nil {
				return err
			}
		}
		return nil
	}})
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

// endImport notes that an import is whole. The writer's lock is held.
func (s *Store) endImport(mark *store.Mark) error {
	err := s.make(&making{s: s, now: s.Time(), byEngine: true, exact: true, also: func(tx *bbolt.Tx) error {
		for name, last := range mark.Last {
			stream, err := tx.Bucket([]byte(bucketStreams)).CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			if err := stream.SetSequence(uint64(last)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(bucketMeta))
		return errors.Join(meta.Put([]byte(metaToken), number(mark.Token)), setPosition(meta, mark.Position), meta.Delete([]byte(metaHalf)))
	}})
	if err != nil {
		return err
	}
	s.half = false
	s.feed.Restart(mark.Position)
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
