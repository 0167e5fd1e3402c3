package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"headgate/internal/store"
)

// row is what state.db holds of an entry: a head, and the value or, when that is in
// a file, what the file has to be.
type row struct {
	flags    byte
	revision store.Revision
	modified time.Time
	expires  time.Time
	size     int // of the value

	value []byte  // as it lies there, sealed or not; it belongs to the transaction
	file  fileRef // of an entry in a file
}

// The flags of a row.
const (
	rowSealed = 1 << iota
	rowInFile
)

// fileRef tells one content of a file from another.
type fileRef struct {
	digest  [sha256.Size]byte // of the file's bytes
	size    int64
	written time.Time // what the file system says
}

// The layout of a row: version, flags, revision, modified, expires, size, checksum,
// and what follows.
const (
	rowVersion = 1
	rowHead    = 2 + 8 + 8 + 8 + 4 + 4
	rowSum     = rowHead - 4
	refBytes   = sha256.Size + 8 + 8
)

// tableOfSums is that of CRC-32C, which processors have an instruction for.
func tableOfSums() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (r *row) encode(key string) []byte {
	b := make([]byte, rowHead, rowHead+max(len(r.value), refBytes))
	b[0], b[1] = rowVersion, r.flags
	binary.BigEndian.PutUint64(b[2:], uint64(r.revision))
	binary.BigEndian.PutUint64(b[10:], nanos(r.modified))
	binary.BigEndian.PutUint64(b[18:], nanos(r.expires))
	binary.BigEndian.PutUint32(b[26:], uint32(r.size))
	if r.flags&rowInFile != 0 {
		b = append(b, r.file.digest[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(r.file.size))
		b = binary.BigEndian.AppendUint64(b, nanos(r.file.written))
	} else {
		b = append(b, r.value...)
	}
	binary.BigEndian.PutUint32(b[rowSum:], rowChecksum(key, b))
	return b
}

func rowChecksum(key string, b []byte) uint32 {
	sum := crc32.Checksum([]byte(key), tableOfSums())
	sum = crc32.Update(sum, tableOfSums(), b[:rowSum])
	return crc32.Update(sum, tableOfSums(), b[rowHead:])
}

// decodeRow reads a row. With whole its checksum is verified, for which all of the
// value is read. The error is *damaged.
func decodeRow(key, b []byte, whole bool) (r row, err error) {
	if len(b) < rowHead || b[0] != rowVersion || b[1]&rowInFile != 0 && len(b) != rowHead+refBytes {
		return r, &damaged{what: fmt.Sprintf("the entry %q is cut off", key)}
	}
	if whole && rowChecksum(string(key), b) != binary.BigEndian.Uint32(b[rowSum:]) {
		return r, &damaged{what: fmt.Sprintf("the entry %q has a wrong checksum", key)}
	}
	r.flags = b[1]
	r.revision = store.Revision(binary.BigEndian.Uint64(b[2:]))
	r.modified = moment(binary.BigEndian.Uint64(b[10:]))
	r.expires = moment(binary.BigEndian.Uint64(b[18:]))
	r.size = int(binary.BigEndian.Uint32(b[26:]))
	rest := b[rowHead:]
	if r.flags&rowInFile == 0 {
		r.value = rest
		return r, nil
	}
	copy(r.file.digest[:], rest)
	r.file.size = int64(binary.BigEndian.Uint64(rest[sha256.Size:]))
	r.file.written = moment(binary.BigEndian.Uint64(rest[sha256.Size+8:]))
	return r, nil
}

func (r *row) expired(now time.Time) bool { return !r.expires.IsZero() && !now.Before(r.expires) }

func (r *row) meta(key string) store.Meta {
	return store.Meta{Key: key, Size: r.size, Expires: r.expires, Revision: r.revision, Modified: r.modified}
}

func (r *row) entry(key string, value []byte) store.Entry {
	return store.Entry{Key: key, Value: value, Expires: r.expires, Revision: r.revision, Modified: r.modified}
}

// nanos and moment keep times as nanoseconds since 1970, the zero time as 0.
func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}

func moment(n uint64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// The layout of a record: version, checksum, time, data.
const (
	recordVersion = 1
	recordHead    = 1 + 4 + 8
)

func encodeRecord(sequence []byte, at time.Time, data []byte) []byte {
	b := make([]byte, recordHead, recordHead+len(data))
	b[0] = recordVersion
	binary.BigEndian.PutUint64(b[5:], nanos(at))
	b = append(b, data...)
	binary.BigEndian.PutUint32(b[1:], recordChecksum(sequence, b))
	return b
}

func recordChecksum(sequence, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(sequence, tableOfSums()), tableOfSums(), b[5:])
}

// decodeRecord reads a record. The data is a copy.
func decodeRecord(stream string, sequence, b []byte) (store.Record, error) {
	if len(sequence) != 8 || len(b) < recordHead || b[0] != recordVersion || recordChecksum(sequence, b) != binary.BigEndian.Uint32(b[1:]) {
		return store.Record{}, &damaged{what: fmt.Sprintf("record %x of the stream %s has a wrong checksum", sequence, stream)}
	}
	return store.Record{
		Stream: stream, Sequence: store.Sequence(binary.BigEndian.Uint64(sequence)),
		Time: moment(binary.BigEndian.Uint64(b[5:])), Data: bytes.Clone(b[recordHead:]),
	}, nil
}

// number returns a number as a key of the database: in order of its value.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
