package cache

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"

	"headgate/internal/proto/header"
)

// entry is a stored response: its head, derived values, and its body. It is immutable
// except for the fields under "changes".
//
// A user of an entry or a view into it holds a reference: the index does, and every
// exchange that is served from it. Its memory is released with the last reference.
type entry struct {
	store *store
	hash  uint64
	body  *body
	size  int64 // of everything, in bytes

	head    piece
	keyLen  int
	variant variant

	status   int
	server   string // its URL, which settings hold
	part     part
	rules    has
	stored   int64  // when it came, by store.now
	age      int64  // how old it was then, in nanoseconds
	life     int64  // how long it is fresh, in nanoseconds
	while    int64  // how long after that it may be served while revalidated
	onError  int64  // and when servers fail
	received int64  // when it came, Unix seconds
	date     int64  // of Date, Unix seconds
	modified int64  // of Last-Modified, Unix seconds; noDate if there is none
	etag     string // view
	lastMod  string // view
	tagged   bool   // it has tags
	guessed  bool   // life is default_ttl, and the response does not look like a file
	brief    bool   // the body is not what it should be: it is kept for moments, and not validated

	// changes
	refs   atomic.Int32
	used   atomic.Uint32
	purged atomic.Bool // it is stale, whatever its life
	next   *entry      // of the same hash; guarded by the shard
	linked bool        // guarded by the shard
	hits   uint64      // requests that were answered with it at once; guarded by the shard
	queued struct {    // guarded by the queue
		where          where
		before, behind *entry
	}
}

// noDate represents a date that is absent or invalid.
const noDate = math.MinInt64

// entryCost is the memory of an entry outside of the arena, in bytes: itself,
// its body, its place in the index, its ghost after eviction, and garbage that
// is not collected yet.
const entryCost = 1 << 10

// hold keeps the entry's memory until release.
func (e *entry) hold() { e.refs.Add(1) }

// release lets go of the entry.
func (e *entry) release() {
	if e.refs.Add(-1) > 0 {
		return
	}
	e.store.entries.Add(-1)
	e.body.release()
	e.store.arena.release(e.head)
}

// key returns the key.
func (e *entry) key() []byte { return e.head.mem[:e.keyLen] }

// varyNames returns the names of the fields that Vary names, each with a comma.
func (e *entry) varyNames() string {
	return view(e.head.mem[e.keyLen : e.keyLen+e.variant.names])
}

// use counts a use, for the queue.
func (e *entry) use() {
	if n := e.used.Load(); n < maxUse {
		e.used.Store(n + 1)
	}
}

// The head of an entry is its key, the names of Vary, and its fields: for each a
// number, the lengths of name and value, and both.
const fieldHead = 4

// most are the longest parts of a head that can be stored.
const (
	maxName  = 255
	maxValue = 1<<16 - 1
)

// fieldsSize returns the size of fields in bytes, false if they are too long.
func fieldsSize(fields []header.Field) (n int, ok bool) {
	for i := range fields {
		f := &fields[i]
		if len(f.Name) > maxName || len(f.Value) > maxValue {
			return 0, false
		}
		n += fieldHead + len(f.Name) + len(f.Value)
	}
	return n, true
}

// appendField appends a field and returns the start of its value.
func appendField(b []byte, f *header.Field) ([]byte, int) {
	b = append(b, byte(f.ID), byte(len(f.Name)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Value)))
	b = append(b, f.Name...)
	at := len(b)
	return append(b, f.Value...), at
}

// fields adds the fields that pass to a list, as views.
func (e *entry) fields(list *header.List, pass func(header.ID) bool) {
	b := e.head.mem[e.keyLen+e.variant.names:]
	for len(b) > 0 {
		id, n, v := header.ID(b[0]), int(b[1]), int(binary.LittleEndian.Uint16(b[2:]))
		b = b[fieldHead:]
		if pass == nil || pass(id) {
			list.AddKnown(id, view(b[:n]), view(b[n:n+v]))
		}
		b = b[n+v:]
	}
}

// findValidators finds the tag and the date in the head.
func (e *entry) findValidators() {
	b := e.head.mem[e.keyLen+e.variant.names:]
	for len(b) > 0 {
		id, n, v := header.ID(b[0]), int(b[1]), int(binary.LittleEndian.Uint16(b[2:]))
		b = b[fieldHead+n:]
		switch id {
		case header.ETag:
			e.etag = view(b[:v])
		case header.LastModified:
			e.lastMod = view(b[:v])
		}
		b = b[v:]
	}
}

// view returns the bytes as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
