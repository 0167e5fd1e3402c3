package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// ID identifies a commit: 32 hexadecimal digits.
type ID string

// NewID returns a random identifier for a change.
func NewID() ID {
	var b [idBytes]byte
	rand.Read(b[:])
	return ID(hex.EncodeToString(b[:]))
}

const idBytes = 16

// Bytes returns the 16 bytes of an identifier, or none for an empty one.
func (id ID) Bytes() ([]byte, error) {
	b, err := hex.DecodeString(string(id))
	if err != nil || len(b) != 0 && len(b) != idBytes {
		return nil, fmt.Errorf("invalid identifier %q of a change", string(id))
	}
	return b, nil
}

// IDOf returns the identifier with these bytes.
func IDOf(b []byte) ID { return ID(hex.EncodeToString(b)) }

// Position is a place in the chain of commits. A revision alone does not tell one history
// from another: an older copy that was put back reaches the same number again.
type Position struct {
	Revision Revision
	// ID identifies the commit with the revision. "" is not compared.
	ID ID
}

// The bounds of the log, in which watches and retries find commits. A commit that is older
// or more than that is forgotten, and a watch from before it gets ErrTooOld.
const (
	LogAge  = 24 * time.Hour
	LogSize = 256 << 20
)

// Item is one part of an export: exactly one of its fields is set.
type Item struct {
	Mark   *Mark
	Entry  *Entry
	Record *Record
}

// Mark begins an export.
type Mark struct {
	// Position is where the export was made.
	Position Position
	// Time is when, by the engine's clock.
	Time time.Time
	// Token is the highest that a lease had.
	Token uint64
	// Last are the sequences of the last records of all streams, also of those whose
	// records were all removed.
	Last map[string]Sequence
}

// TTL returns the time to live of what ends at a moment of the caller's own clock; 0 for
// the zero time, which never ends. What has ended already lives for a moment.
func TTL(now, end time.Time) time.Duration {
	if end.IsZero() {
		return 0
	}
	return max(end.Sub(now), time.Millisecond)
}
