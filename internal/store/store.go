// Package store is the interface for state besides the configuration files: users, tokens,
// sessions, certificates, keys, revisions, the audit log, events. An engine that several
// machines share can replace the one that stores everything on this machine (store/local).
// Package storetest has the requirements for every engine.
//
// A store is a set of keys with values. Every commit has a revision, one higher than the
// previous one; it changes several keys or none, under conditions on the revisions of keys.
// Changes can be watched by prefix. Work that only one node may do at a time needs a lease.
// Streams hold records that are only appended: a commit adds its audit record atomically.
//
// Commits form a chain: each has a random identifier and that of the previous commit. The
// identifier is that of the change, so that a change whose response was lost can be
// committed again without being made twice, and a node that knows the Position up to which
// it has followed notices that the store was replaced by an older copy.
//
// Time is the engine's: entries have a time to live, and expiry does not depend on a node's
// clock.
//
// No engine is used on the path of a request, and none is needed to serve: what traffic
// needs is in files on every node.
package store

import (
	"context"
	"iter"
	"time"
)

// Revision counts commits. It grows by one with each of them; 0 is before the first,
// and as the revision of a key it says that the key is absent.
type Revision uint64

// Sequence is the place of a record in its stream. The first record has 1.
type Sequence uint64

// The bounds that every engine holds. A change or a value over them is refused with
// an error that wraps ErrTooLarge.
const (
	// MaxOperations is how many conditions, puts, deletions and appended records
	// a change has in all.
	MaxOperations = 64
	// MaxChange is how many bytes the keys, values and records of a change have in
	// all.
	MaxChange = 1 << 20
	// MaxKey is how many bytes a key has.
	MaxKey = 512
	// MaxName is how many bytes the name of a stream or of a lease has.
	MaxName = 128
	// MaxPage is how many keys List returns and how many records Page returns.
	MaxPage = 1000
	// MaxLease is for how long a lease may be acquired or renewed at once.
	MaxLease = time.Hour
)

// Store keeps what all nodes share. Its methods may be called by several goroutines
// at once, and every one ends soon after its context. Values that it returns belong
// to the caller; values that it is given are not kept.
//
// Every method may return an error that wraps ErrUnavailable: the engine is away, or
// its disk is full or cannot be written to. Nothing was changed then, as far as the
// engine knows, and traffic goes on.
type Store interface {
	// Get returns one entry. The error wraps ErrNotFound when there is none.
	Get(ctx context.Context, key string) (Entry, error)

	// List returns the keys that begin with prefix and come after the key after, at
	// most n of them (1 to MaxPage), in order of their bytes and without values: the
	// names of 10 000 certificates cost no 10 000 keys. Fewer than n means that there
	// are no more.
	List(ctx context.Context, prefix, after string, n int) ([]Meta, error)

	// Now returns the time of the engine's clock, which decides about everything that
	// expires.
	Now(ctx context.Context) (time.Time, error)

	// Snapshot returns all entries whose keys begin with prefix, in order, as they
	// are at the position that it returns.
	Snapshot(ctx context.Context, prefix string) ([]Entry, Position, error)

	// Commit makes a change whole or not at all. When it returns no error the change
	// outlives a crash and a loss of power. The error is a *Conflict when a condition
	// does not hold, and wraps ErrFenced when the lease in Under has ended. A change
	// whose ID the log has was made already: Commit does nothing and returns the
	// revision that it got then. The error wraps ErrUnknownOutcome when the answer of
	// the engine was lost: commit the same change again, with the same ID.
	Commit(ctx context.Context, c Change) (Revision, error)

	// Watch yields what was committed to keys with a prefix after a position, one
	// batch for each commit (without a prefix also for those that change no key), in order and without a gap, and waits for more until
	// its context ends or the loop is left. An error is the last thing it yields.
	// It wraps ErrTooOld when the engine has forgotten a commit in between: take a
	// Snapshot, and watch from its position on. It wraps ErrRewound when the log has
	// another commit at that position, or ends before it, and ErrUnavailable when the
	// engine cannot be reached: watch again from the same position.
	Watch(ctx context.Context, prefix string, after Position) iter.Seq2[Batch, error]

	// Acquire acquires the lease with a name for a while (up to MaxLease), by the engine's
	// clock. The error is a *Held if another node has it. It does not wait.
	Acquire(ctx context.Context, name string, ttl time.Duration) (*Lease, error)

	// Append adds records to a stream and returns the sequence of the last. What
	// belongs to a change is appended in its commit instead.
	Append(ctx context.Context, stream string, records [][]byte) (Sequence, error)

	// Page returns the records before a sequence, the newest first, at most n of them
	// (1 to MaxPage). Before 0 means from the newest on.
	Page(ctx context.Context, stream string, before Sequence, n int) ([]Record, error)

	// Export yields everything, as it is at one position: a Mark first, then entries
	// and records. Leases are not exported.
	Export(ctx context.Context) iter.Seq2[Item, error]

	// Import fills an empty store with what another has exported, and keeps revisions,
	// times and sequences. Until all of it is there the store refuses changes, also
	// after a crash; then the import is repeated. The error wraps ErrNotEmpty when
	// something was committed here before.
	Import(ctx context.Context, items iter.Seq2[Item, error]) error

	// Freeze refuses all changes from now on with an error that wraps ErrMoved and names
	// the place that the state has moved to; reads go on. An empty place lets changes
	// be made again.
	Freeze(ctx context.Context, place string) error

	// Close ends all watches and gives free what the engine holds. Methods that are
	// called afterwards return an error that wraps ErrClosed.
	Close() error
}

// Entry is a key with its value.
type Entry struct {
	// Key names the entry. The constants of this package say what keys there are.
	Key string
	// Value is what is kept. Whether it is sealed where it lies is decided by the
	// key (Sealed), so that no caller can forget it.
	Value []byte
	// TTL is how long the entry lives from its commit on; 0 is for ever. Commit reads
	// it and nothing else does.
	TTL time.Duration
	// Expires is when the entry ceases to be, by the engine's clock; the zero time
	// is never. It is not read from that moment on. Commit sets it.
	Expires time.Time
	// Revision is that of the commit which wrote the entry. Commit sets it.
	Revision Revision
	// Modified is when that was, by the engine's clock. Commit sets it.
	Modified time.Time
}

// Meta is what List tells of an entry without reading its value.
type Meta struct {
	Key      string
	Size     int // of the value, in bytes
	Expires  time.Time
	Revision Revision
	Modified time.Time
}

// Condition is what has to hold for a change to be made.
type Condition struct {
	// Key names the entry.
	Key string
	// Revision is the one that the entry must have; 0 means that it must be absent.
	Revision Revision
}

// Change is what a commit does. A key is written or deleted once; the deletion of an
// absent key does nothing. A change that only appends is a commit too.
type Change struct {
	// ID identifies the change in the log. NewID makes one; without one the engine does,
	// and an answer that is lost cannot be asked for again.
	ID ID
	// If are the conditions. All must hold.
	If []Condition
	// Put are the entries to write. Key, Value and TTL are used.
	Put []Entry
	// Delete are the keys to remove.
	Delete []string
	// Append are records for streams, made durable in the same commit. Stream and
	// Data are used. What a change does is told of here and nowhere else, so that
	// nothing is done without its audit record, and none tells of what was not done.
	Append []Record
	// Under is the lease that has to be held still, nil for none.
	Under *Lease
	// Who and Why are told to watchers. They may be empty.
	Who, Why string
}

// Batch is one commit as a watcher sees it: only the keys with its prefix.
type Batch struct {
	// Position is that of the commit.
	Position
	// Before identifies the commit before it, "" if that is not in the log.
	Before ID
	// Time is when it was made, by the engine's clock.
	Time     time.Time
	Put      []Entry
	Delete   []string
	Who, Why string
}

// Record is one entry of a stream.
type Record struct {
	// Stream is the stream's name.
	Stream string
	// Sequence is the record's place. It is set by the engine; in one stream it
	// grows by one, and after records were forgotten it goes on.
	Sequence Sequence
	// Time is when the record was appended, by the engine's clock.
	Time time.Time
	// Data is what is told, usually JSON.
	Data []byte
}
