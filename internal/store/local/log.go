package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"headgate/internal/store"
)

// The log of the database tells of each commit its identifier, that of the commit before
// it, and its time: 16 + 16 + 8 bytes. What was written is in the feed, and only as long as
// the process runs: this engine has one process, which knows what it has not seen.
const (
	logID   = 16
	logRow  = 2*logID + 8
	maxLog  = 1 << 16 // commits
	maxTrim = 64      // of them that a commit removes at most
)

// errMade ends the transaction of a change that was made already.
var errMade = errors.New("the change was made already")

// madeAs returns the revision that a change got when it was made before.
func madeAs(tx *bbolt.Tx, id store.ID) (at store.Revision, made bool, err error) {
	key, err := id.Bytes()
	ids := tx.Bucket([]byte(bucketIDs))
	if err != nil || ids == nil || len(key) == 0 {
		return 0, false, err
	}
	if v := ids.Get(key); len(v) == 8 {
		return store.Revision(binary.BigEndian.Uint64(v)), true, nil
	}
	return 0, false, nil
}

// positionOf returns where the chain ends.
func positionOf(meta *bbolt.Bucket) store.Position {
	at := store.Position{Revision: revisionOf(meta)}
	// A headgate before the chain has counted on without it: then its end is not known.
	if v := meta.Get([]byte(metaID)); len(v) == logID+8 && binary.BigEndian.Uint64(v[logID:]) == uint64(at.Revision) {
		at.ID = store.IDOf(v[:logID])
	}
	return at
}

// setPosition says where the chain ends. An empty identifier begins another chain: the
// commits before it are not known.
func setPosition(meta *bbolt.Bucket, at store.Position) error {
	id, err := at.ID.Bytes()
	if err == nil {
		err = meta.Put([]byte(metaRevision), number(uint64(at.Revision)))
	}
	if err == nil {
		err = meta.Put([]byte(metaID), append(id, number(uint64(at.Revision))...))
	}
	return err
}

// addToLog gives a commit its place in the chain, and forgets old ones.
func addToLog(tx *bbolt.Tx, id store.ID, b *store.Batch) error {
	meta := tx.Bucket([]byte(bucketMeta))
	last := positionOf(meta)
	if id == "" {
		id = store.NewID()
	}
	b.Position, b.Before = store.Position{Revision: last.Revision + 1, ID: id}, last.ID
	return appendLog(tx, b)
}

// appendLog writes a commit that has its place.
func appendLog(tx *bbolt.Tx, b *store.Batch) error {
	log, err := tx.CreateBucketIfNotExists([]byte(bucketLog))
	if err != nil {
		return err
	}
	ids, err := tx.CreateBucketIfNotExists([]byte(bucketIDs))
	if err != nil {
		return err
	}
	id, err := b.ID.Bytes()
	if err != nil {
		return err
	}
	before, err := b.Before.Bytes()
	if err != nil {
		return err
	}
	row := make([]byte, logRow)
	copy(row, id)
	copy(row[logID:], before)
	binary.BigEndian.PutUint64(row[2*logID:], nanos(b.Time))
	log.FillPercent = fill
	key := number(uint64(b.Revision))
	if err := errors.Join(log.Put(key, row), ids.Put(id, key), setPosition(tx.Bucket([]byte(bucketMeta)), b.Position)); err != nil {
		return err
	}
	return trimLog(log, ids, b)
}

// trimLog removes the commits that are too many or too old.
func trimLog(log, ids *bbolt.Bucket, newest *store.Batch) error {
	cursor := log.Cursor()
	k, v := cursor.First()
	for range maxTrim {
		if len(k) != 8 || len(v) != logRow {
			return nil
		}
		tooMany := uint64(newest.Revision)-binary.BigEndian.Uint64(k) >= maxLog
		if !tooMany && newest.Time.Sub(moment(binary.BigEndian.Uint64(v[2*logID:]))) <= store.LogAge {
			return nil
		}
		if err := errors.Join(ids.Delete(bytes.Clone(v[:logID])), log.Delete(bytes.Clone(k))); err != nil {
			return err
		}
		k, v = cursor.First()
	}
	return nil
}

// follows returns why a watch cannot go on from a position, as far as the chain tells.
func (s *Store) follows(ctx context.Context, after store.Position) error {
	return s.view(ctx, func(tx *bbolt.Tx) error {
		last := positionOf(tx.Bucket([]byte(bucketMeta)))
		have, known := last.ID, after.Revision == last.Revision
		if log := tx.Bucket([]byte(bucketLog)); log != nil {
			if v := log.Get(number(uint64(after.Revision))); len(v) == logRow {
				have, known = store.IDOf(v[:logID]), true
			}
		}
		if after.Revision > last.Revision || known && after.ID != "" && after.ID != have {
			return fmt.Errorf("watch after revision %d: %w", after.Revision, store.ErrRewound)
		}
		return nil
	})
}
