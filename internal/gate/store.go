package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/gate/people"
	"headgate/internal/store"
)

// The times of keeping.
const (
	// storeTimeout bounds a call of the store.
	storeTimeout = 10 * time.Second
	// tidyEvery is how often the last uses are written and sessions removed that do not
	// count any more.
	tidyEvery = 5 * time.Second
	// followAgain is after how long a watch that ended is started again.
	followAgain = 2 * time.Second
)

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// keep writes when sessions were used, and removes those that do not count any more.
func (e *Engine) keep(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			e.writeSeen(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			e.tidy()
			e.tidyTokens(e.time())
			e.tidyLinks(e.time())
			e.writeSeen(ctx)
		}
	}
}

// tidy removes sessions from memory whose time is over. The store forgets them by itself.
func (e *Engine) tidy() {
	now, idle := clock.Now(), e.use.Load().idle
	if idle == 0 {
		return // nothing is configured: the sessions may count again
	}
	for _, s := range e.sessions.all() {
		if now >= s.until || now-s.seen.Load() > int64(idle) {
			e.forget(s.key)
		}
	}
}

// writeSeen writes the last uses of sessions and tokens.
func (e *Engine) writeSeen(ctx context.Context) {
	idle, now := e.use.Load().idle, e.time()
	writeUses(ctx, e, "sessions", e.sessions.all(), func(s *Session) lastUse { return lastUse{&s.dirty, &s.ended, &s.revision} }, func(s *Session) store.Entry { return s.entry(idle, now) })
	writeUses(ctx, e, "tokens", e.tokens.all(), func(t *Token) lastUse { return lastUse{&t.dirty, &t.ended, &t.revision} }, func(t *Token) store.Entry { return t.entry(now) })
}

// lastUse is what a session and a token have about their last use.
type lastUse struct {
	dirty    *atomic.Bool // it is to be written
	ended    *atomic.Bool
	revision *atomic.Uint64
}

// writeUses writes those of all that were used. What cannot be written is tried again with its
// next use; the rest, when this is called again.
func writeUses[T any](ctx context.Context, e *Engine, what string, all []T, useOf func(T) lastUse, entryOf func(T) store.Entry) {
	used := slices.DeleteFunc(all, func(one T) bool {
		u := useOf(one)
		return !u.dirty.Load() || u.ended.Load()
	})
	for some := range slices.Chunk(used, store.MaxOperations/2) {
		change := store.Change{Who: "headgate", Why: what + " used"}
		for _, one := range some {
			entry := entryOf(one)
			// One that was ended on another node must not come back.
			change.If = append(change.If, store.Condition{Key: entry.Key, Revision: store.Revision(useOf(one).revision.Load())})
			change.Put = append(change.Put, entry)
			useOf(one).dirty.Store(false)
		}
		ctx, stop := context.WithTimeout(ctx, storeTimeout)
		revision, err := e.o.Store.Commit(ctx, change)
		stop()
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				e.o.Log.Debug("last uses are not saved", "of", what, "error", err)
			}
			return
		}
		for _, one := range some {
			useOf(one).revision.Store(uint64(revision))
		}
	}
}

// restore reads what the store has: sessions, tokens, links and openings. It returns the position from which on
// changes are followed.
func (e *Engine) restore(ctx context.Context) store.Position {
	ctx, stop := context.WithTimeout(ctx, storeTimeout)
	defer stop()
	entries, at, err := e.o.Store.Snapshot(ctx, store.PrefixGate)
	if err != nil {
		e.o.Log.Error("sessions of applications cannot be read", "error", err)
		return store.Position{}
	}
	e.acceptAll(entries)
	known := make(map[string]bool, len(entries))
	for i := range entries {
		known[entries[i].Key] = true
	}
	// What is not there any more was ended while nothing was followed.
	for _, s := range e.sessions.all() {
		if !known[keyOf(s.key)] {
			e.forget(s.key)
		}
	}
	for _, t := range e.tokens.all() {
		if !known[store.PrefixGateToken+t.Name] {
			e.forgetToken(t.Name)
		}
	}
	for _, key := range e.linkKeys(func(time.Time) bool { return true }) {
		if !known[key] {
			e.forgetLink(key)
		}
	}
	for _, o := range e.Openings() {
		if !known[store.PrefixGateOpen+o.Host] {
			e.openings.set(o.Host, nil, e.time())
		}
	}
	return at
}

// acceptAll reads entries of the store.
func (e *Engine) acceptAll(entries []store.Entry) {
	for _, children := range []bool{false, true} { // children need their sign-in
		for i := range entries {
			switch entry := &entries[i]; {
			case strings.HasPrefix(entry.Key, store.PrefixGateSession):
				e.accept(entry, children)
			case children:
				// read in the first round
			case strings.HasPrefix(entry.Key, store.PrefixGateToken):
				e.acceptToken(entry)
			case strings.HasPrefix(entry.Key, store.PrefixGateLink), strings.HasPrefix(entry.Key, store.PrefixGateVisit):
				e.acceptLink(entry)
			case strings.HasPrefix(entry.Key, store.PrefixGateOpen):
				e.acceptOpening(entry)
			}
		}
	}
}

// accept takes an entry of the store: what this node wrote itself, or another.
func (e *Engine) accept(entry *store.Entry, children bool) {
	d, ok := parseDigest(strings.TrimPrefix(entry.Key, store.PrefixGateSession))
	var k keptSession
	if !ok || json.Unmarshal(entry.Value, &k) != nil || (k.Parent != "") != children {
		return
	}
	if children {
		parent, ok := parseDigest(k.Parent)
		if h := e.sessions.find(parent); ok && h != nil && h.host == "" && e.sessions.find(d) == nil {
			e.sessions.addHost(h.session, d, k.Host)
		}
		return
	}
	if c := e.sessions.find(d); c != nil {
		known, p := c.session, e.present()
		known.revision.Store(uint64(entry.Revision))
		if k.Person != nil && k.Person.ID == known.Person().ID && k.Person.Provider != people.Provider {
			known.setPerson(k.Person.ready()) // another node has learned more
		}
		if at := p.momentOf(k.confirmed()); at > known.confirmed.Load() {
			known.confirmed.Store(at) // another node has checked it
			known.refreshFor.Store(k.RefreshFor)
		}
		if at := p.momentOf(k.Seen); at > known.seen.Load() {
			known.seen.Store(at) // another node has served it
			known.kept.Store(at)
		}
		return
	}
	if k.Person == nil {
		return
	}
	address, _ := netip.ParseAddr(k.Address)
	s := newSession(d, k.Person.ready(), k.Issuer, address, k.Agent, k.Created, k.Expires)
	if l := e.people.Listed(strings.TrimPrefix(k.Person.ID, people.Provider+"/")); l != nil && k.Person.Provider == people.Provider {
		s.setPerson(localPerson(l)) // what is known now
	}
	s.clocks(k.Seen, k.confirmed(), e.present())
	s.refreshes.Store(k.Refreshes)
	s.refreshFor.Store(k.RefreshFor)
	s.revision.Store(uint64(entry.Revision))
	s.foreign.Store(e.use.Load().foreign(s))
	e.sessions.add(s)
}

// confirmed returns when the provider confirmed a session last.
func (k *keptSession) confirmed() time.Time {
	if k.Confirmed.IsZero() {
		return k.Created // written by an earlier version
	}
	return k.Confirmed
}

// follow takes what other nodes write, and what an operator does by the command line.
func (e *Engine) follow(ctx context.Context, after store.Position) {
	for ctx.Err() == nil {
		for batch, err := range e.o.Store.Watch(ctx, store.PrefixGate, after) {
			if err != nil {
				if errors.Is(err, store.ErrTooOld) || errors.Is(err, store.ErrRewound) {
					after = e.restore(ctx)
				}
				break
			}
			after = batch.Position
			e.apply(&batch)
		}
		clock.Sleep(ctx, followAgain)
	}
}

func (e *Engine) apply(batch *store.Batch) {
	e.acceptAll(batch.Put)
	for _, key := range batch.Delete {
		if name, ok := strings.CutPrefix(key, store.PrefixGateToken); ok {
			if t := e.tokens.named(name); t != nil && t.revision.Load() < uint64(batch.Revision) {
				e.forgetToken(name) // and not one that was made with the name since
			}
		} else if strings.HasPrefix(key, store.PrefixGateLink) || strings.HasPrefix(key, store.PrefixGateVisit) {
			e.forgetLink(key)
		} else if host, ok := strings.CutPrefix(key, store.PrefixGateOpen); ok {
			e.openings.set(host, nil, e.time())
		} else if text, ok := strings.CutPrefix(key, store.PrefixGateSession); ok {
			if d, ok := parseDigest(text); ok {
				e.forget(d)
				e.dropHost(d)
			}
		}
	}
}

// commit writes a change. The error wraps ErrUnavailable, or is ErrExpired where a condition
// does not hold.
func (e *Engine) commit(c store.Change) (store.Revision, error) {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	revision, err := e.o.Store.Commit(ctx, c)
	if err == nil {
		return revision, nil
	}
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return 0, ErrExpired
	}
	e.o.Log.Warn("a sign-in cannot be saved", "error", err)
	return 0, fmt.Errorf("%w: %v", ErrUnavailable, err)
}
