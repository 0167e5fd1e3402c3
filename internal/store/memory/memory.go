// Package memory is a store that keeps nothing on disk: for tests of what stands on
// a store, and for a process that is to leave nothing behind. New makes one; it is
// gone with the process.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/store"
)

// maxHistory is how many commits a watch may be behind, and maxHistorySize how many
// bytes they have.
const (
	maxHistory     = 4096
	maxHistorySize = 16 << 20
)

// Store is a store in memory. Its methods may be called by several goroutines at
// once.
type Store struct {
	// constant
	clock   func() time.Time
	closing context.Context // ends when the store is closed
	end     context.CancelFunc

	mu struct {
		sync.Mutex
		at      store.Position
		entries map[string]store.Entry
		streams map[string]*stream
		leases  map[string]lease
		token   uint64
		history []store.Batch               // the newest commits, oldest first
		made    map[store.ID]store.Revision // by the log
		moved   string                      // where the state has moved to
		half    bool                        // an import was begun and not finished
		size    int                         // of the history, in bytes
		mail    map[string]*store.Mailbox   // of machines, by name
		changed chan struct{}
		due     time.Time // not after the first entry that expires
		closed  bool
	}
}

type stream struct {
	last    store.Sequence
	records []store.Record // oldest first
}

// New returns an empty store.
func New() *Store { return NewAt(time.Now) }

// NewAhead returns an empty store whose engine's clock differs from that of this machine.
func NewAhead(by time.Duration) *Store {
	return NewAt(func() time.Time { return time.Now().Add(by) })
}

// NewAt returns an empty store whose engine has this clock.
func NewAt(clock func() time.Time) *Store {
	s := &Store{clock: clock}
	s.closing, s.end = context.WithCancel(context.Background())
	s.mu.mail = map[string]*store.Mailbox{}
	s.mu.entries, s.mu.streams, s.mu.leases = map[string]store.Entry{}, map[string]*stream{}, map[string]lease{}
	s.mu.made = map[store.ID]store.Revision{}
	s.mu.changed = make(chan struct{})
	return s
}

// Reopen closes the store and returns another with the same state, as a process has
// that begins anew: for tests of what has to outlive one.
func (s *Store) Reopen() *Store {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	again := &Store{clock: s.clock}
	again.closing, again.end = context.WithCancel(context.Background())
	again.mu.mail = map[string]*store.Mailbox{}
	again.mu.at, again.mu.token, again.mu.due = s.mu.at, s.mu.token, s.mu.due
	again.mu.history, again.mu.size, again.mu.made, again.mu.moved, again.mu.half = s.mu.history, s.mu.size, s.mu.made, s.mu.moved, s.mu.half
	again.mu.entries, again.mu.streams, again.mu.leases = s.mu.entries, s.mu.streams, map[string]lease{}
	again.mu.changed = make(chan struct{})
	s.mu.entries, s.mu.streams, s.mu.history = nil, nil, nil
	return again
}

// lock locks the store, or returns why it cannot be used; then it is not locked.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.expireLocked()
	return nil
}

// expireLocked removes what has expired, as a commit of the engine.
func (s *Store) expireLocked() {
	now := s.clock()
	if s.mu.due.IsZero() || now.Before(s.mu.due) {
		return
	}
	s.mu.due = time.Time{}
	var gone []string
	for key, e := range s.mu.entries {
		switch {
		case e.Expires.IsZero():
		case now.Before(e.Expires):
			s.expiresLocked(e)
		default:
			gone = append(gone, key)
			delete(s.mu.entries, key)
		}
	}
	if len(gone) > 0 && s.writableLocked() == nil {
		slices.Sort(gone)
		s.tellLocked(s.nextLocked(store.NewID()), store.Batch{Delete: gone, Who: "store", Why: "expired"})
	}
}

// expiresLocked notes when an entry expires.
func (s *Store) expiresLocked(e store.Entry) {
	if !e.Expires.IsZero() && (s.mu.due.IsZero() || e.Expires.Before(s.mu.due)) {
		s.mu.due = e.Expires
	}
}

// Get returns one entry.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	if err := s.lock(ctx); err != nil {
		return store.Entry{}, err
	}
	defer s.mu.Unlock()
	e, ok := s.mu.entries[key]
	if !ok {
		return store.Entry{}, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	e.Value = slices.Clone(e.Value)
	return e, nil
}

// keysLocked returns the keys with a prefix, in order.
func (s *Store) keysLocked(prefix string) []string {
	var keys []string
	for key := range s.mu.entries {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// List returns keys without values.
func (s *Store) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	n = min(max(n, 1), store.MaxPage)
	var all []store.Meta
	for _, key := range s.keysLocked(prefix) {
		if key > after && len(all) < n {
			e := s.mu.entries[key]
			all = append(all, store.Meta{Key: key, Size: len(e.Value), Expires: e.Expires, Revision: e.Revision, Modified: e.Modified})
		}
	}
	return all, nil
}

// Snapshot returns all entries with a prefix.
func (s *Store) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	if err := s.lock(ctx); err != nil {
		return nil, store.Position{}, err
	}
	defer s.mu.Unlock()
	var all []store.Entry
	for _, key := range s.keysLocked(prefix) {
		e := s.mu.entries[key]
		e.Value = slices.Clone(e.Value)
		all = append(all, e)
	}
	return all, s.mu.at, nil
}

// Commit makes a change whole or not at all.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if at, ok := s.mu.made[c.ID]; ok && c.ID != "" {
		return at, nil
	}
	if err := s.writableLocked(); err != nil {
		return 0, err
	}
	for _, cond := range c.If {
		if e := s.mu.entries[cond.Key]; e.Revision != cond.Revision {
			return 0, &store.Conflict{Key: cond.Key, Have: e.Revision}
		}
	}
	if l := c.Under; l != nil {
		if held := s.mu.leases[l.Name]; held.token != l.Token || !s.clock().Before(held.until) {
			return 0, store.ErrFenced
		}
	}
	at, now := s.nextLocked(c.ID), s.clock()
	batch := store.Batch{Delete: slices.Clone(c.Delete), Who: c.Who, Why: c.Why}
	for _, e := range c.Put {
		e = store.Entry{Key: e.Key, Value: slices.Clone(e.Value), Revision: at.Revision, Modified: now, Expires: expiry(now, e.TTL)}
		s.mu.entries[e.Key] = e
		s.expiresLocked(e)
		batch.Put = append(batch.Put, e)
	}
	for _, key := range c.Delete {
		delete(s.mu.entries, key)
	}
	for _, r := range c.Append {
		s.appendLocked(r.Stream, r.Data)
	}
	batch.Delete = append(batch.Delete, s.boundSessionsLocked()...)
	s.tellLocked(at, batch)
	return at.Revision, nil
}

// expiry returns when something ends that lives for a while from now on.
func expiry(now time.Time, ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}

// nextLocked returns the position of the next commit.
func (s *Store) nextLocked(id store.ID) store.Position {
	if id == "" {
		id = store.NewID()
	}
	return store.Position{Revision: s.mu.at.Revision + 1, ID: id}
}

// writableLocked returns why no change is made.
func (s *Store) writableLocked() error {
	switch {
	case s.mu.half:
		return fmt.Errorf("%w: an import is not finished", store.ErrUnavailable)
	case s.mu.moved != "":
		return fmt.Errorf("%w to %s", store.ErrMoved, s.mu.moved)
	}
	return nil
}

// boundSessionsLocked removes the oldest sessions over their bound, and returns their
// keys.
func (s *Store) boundSessionsLocked() []string {
	keys := s.keysLocked(store.PrefixSession)
	over := max(len(keys)-store.MaxSessions, 0)
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(s.mu.entries[a].Revision, s.mu.entries[b].Revision) })
	for _, key := range keys[:over] {
		delete(s.mu.entries, key)
	}
	return keys[:over]
}

// Time returns the time of the engine's clock: see store.Time.
func (s *Store) Time() time.Time { return s.clock() }

// Now returns the time of the engine's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.lock(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.clock(), nil
}

// Close ends all watches.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed {
		s.mu.closed = true
		close(s.mu.changed)
		s.end()
	}
	return nil
}
