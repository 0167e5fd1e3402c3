package bans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/store"
)

// What is kept: a ban under ban/at/NETWORK/SOURCE, a pardon under ban/never/NETWORK, and
// when an operator signed in last under ban/operator/ADDRESS. In a network the slash is an
// underscore.
const (
	prefixAt       = store.PrefixBan + "at/"
	prefixNever    = store.PrefixBan + "never/"
	prefixOperator = store.PrefixBan + "operator/"
)

// kept is a ban as the store has it.
type kept struct {
	Rule    string    `json:"rule,omitempty"`
	Who     string    `json:"who,omitempty"`
	Why     string    `json:"why,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Times   int       `json:"times"`
	Rejects bool      `json:"rejects,omitempty"`
}

func part(n netip.Prefix) string { return strings.Replace(n.String(), "/", "_", 1) }

func networkIn(part string) (netip.Prefix, error) {
	return netip.ParsePrefix(strings.Replace(part, "_", "/", 1))
}

func keyOfBan(b *Ban) string {
	return fmt.Sprintf("%s%s/%x", prefixAt, part(b.Network), uint64(b.Source))
}

// banIDOf is the reverse of keyOfBan.
func banIDOf(key string) (id banID, ok bool) {
	rest, ok := strings.CutPrefix(key, prefixAt)
	network, source, _ := strings.Cut(rest, "/")
	n, err := networkIn(network)
	var s uint64
	if _, bad := fmt.Sscanf(source, "%x", &s); !ok || err != nil || bad != nil {
		return banID{}, false
	}
	return banID{n, Source(s)}, true
}

func keyOfPardon(n netip.Prefix) string { return prefixNever + part(n) }

func keyOfOperator(a netip.Addr) string { return prefixOperator + a.String() }

// forgetAt returns when a ban does not count any more for the next.
func (b *Ban) forgetAt() time.Time {
	if b.Rule == "" {
		return b.Until
	}
	return b.Until.Add(max(rememberFor, 2*b.Until.Sub(b.Since)))
}

func (e *Engine) dirtyLocked(b *Ban) {
	value, err := json.Marshal(kept{b.Rule, b.Who, b.Why, b.Since, b.Until, b.Times, b.Rejects})
	if err != nil {
		return // there is nothing in it that cannot be written
	}
	key := keyOfBan(b)
	e.mu.dirty[key] = store.Entry{Key: key, Value: value, TTL: store.TTL(e.o.Clock(), b.forgetAt())}
}

func entryOfPardon(p Pardon) store.Entry {
	value, _ := json.Marshal(p)
	return store.Entry{Key: keyOfPardon(p.Network), Value: value}
}

func entryOfOperator(at time.Time) store.Entry {
	value, _ := json.Marshal(at)
	return store.Entry{Value: value, TTL: operatorTime}
}

// The times of keeping.
const (
	// writesAtOnce is how many commits are made then; the rest waits for the next time.
	writesAtOnce = 16
	// tidyEvery is how often what is new is written and bans that ended are taken off the
	// table, and lookEvery how often the addresses of this machine are looked at.
	tidyEvery = time.Second
	lookEvery = time.Minute
	// storeTimeout bounds a call of the store.
	storeTimeout = 10 * time.Second
)

// keep writes what is new, ends bans whose time is over, and follows the addresses of this
// machine.
func (e *Engine) keep(ctx context.Context) {
	tidy, look := time.NewTicker(tidyEvery), time.NewTicker(lookEvery)
	defer tidy.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			e.write(context.Background()) // the last of it
			return
		case <-tidy.C:
			e.tidy()
			e.write(ctx)
		case <-look.C:
			e.protected.refresh()
		}
	}
}

// write writes what is dirty.
func (e *Engine) write(ctx context.Context) {
	if e.o.Store == nil {
		return
	}
	for range writesAtOnce {
		batch := e.batch()
		if len(batch) == 0 {
			return
		}
		c := store.Change{Who: "headgate", Why: "bans"}
		for key, entry := range batch {
			if entry.Value == nil {
				c.Delete = append(c.Delete, key)
				continue
			}
			entry.Key = key
			c.Put = append(c.Put, entry)
		}
		ctx, stop := context.WithTimeout(ctx, storeTimeout)
		_, err := e.o.Store.Commit(ctx, c)
		stop()
		if err != nil {
			e.again(batch)
			if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrClosed) {
				e.o.Log.Warn("bans cannot be saved; they act, and it is tried again", "error", err)
			}
			return
		}
	}
}

// batch takes a part of what is dirty.
func (e *Engine) batch() map[string]store.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]store.Entry{}
	for key, entry := range e.mu.dirty {
		if len(out) == store.MaxOperations {
			break
		}
		out[key] = entry
		delete(e.mu.dirty, key)
	}
	e.mu.writing = out
	return out
}

// again puts back what could not be written, unless it changed meanwhile.
func (e *Engine) again(batch map[string]store.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.writing = nil
	for key, entry := range batch {
		if _, newer := e.mu.dirty[key]; !newer {
			e.mu.dirty[key] = entry
		}
	}
}

// tidy ends bans whose time is over.
func (e *Engine) tidy() {
	now := e.o.Clock()
	e.mu.Lock()
	var ended []*Ban
	for id, b := range e.mu.all {
		if b.Until.After(now) {
			continue
		}
		if e.table.get(b.Network, b.Source) == b {
			e.offTableLocked(b)
			ended = append(ended, b)
		}
		if now.After(b.forgetAt()) {
			delete(e.mu.all, id) // the store forgets it by itself
		}
	}
	var cuts []cut
	e.mu.cuts = slices.DeleteFunc(e.mu.cuts, func(c cut) bool {
		if c.at.After(now) {
			return false
		}
		cuts = append(cuts, c)
		return true
	})
	e.mu.Unlock()
	e.publishEnded(ended, "")
	for _, c := range cuts {
		e.o.Cut(c.network)
	}
}

// restore takes what the store has. It returns the position from which on changes are
// followed.
func (e *Engine) restore(ctx context.Context) store.Position {
	if e.o.Store == nil {
		return store.Position{}
	}
	ctx, stop := context.WithTimeout(ctx, storeTimeout)
	defer stop()
	entries, at, err := e.o.Store.Snapshot(ctx, store.PrefixBan)
	if err != nil {
		e.o.Log.Error("bans of before cannot be read", "error", err)
		return store.Position{}
	}
	for i := range entries {
		e.accept(entries[i].Key, entries[i].Value)
	}
	return at
}

// accept takes an entry of the store: what this node wrote itself, or another. A nil value
// says that it is gone.
func (e *Engine) accept(key string, value []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, newer := e.mu.dirty[key]; newer {
		return
	}
	switch {
	case strings.HasPrefix(key, prefixAt):
		if id, ok := banIDOf(key); ok {
			e.acceptBanLocked(id.network, id.source, value)
		}
	case strings.HasPrefix(key, prefixNever):
		n, err := networkIn(strings.TrimPrefix(key, prefixNever))
		if err != nil {
			return
		}
		var p Pardon
		if value == nil {
			delete(e.mu.pardoned, n)
		} else if json.Unmarshal(value, &p) == nil {
			p.Network = n
			e.mu.pardoned[n] = p
		}
		e.pardonsLocked()
	case strings.HasPrefix(key, prefixOperator):
		var at time.Time
		if a, err := netip.ParseAddr(strings.TrimPrefix(key, prefixOperator)); err == nil && json.Unmarshal(value, &at) == nil {
			e.protected.operator(a, at)
		}
	}
}

func (e *Engine) acceptBanLocked(n netip.Prefix, s Source, value []byte) {
	was := e.mu.all[banID{n, s}]
	if value == nil {
		if was != nil {
			e.offTableLocked(was)
			delete(e.mu.all, banID{n, s})
		}
		return
	}
	var k kept
	if json.Unmarshal(value, &k) != nil || was != nil && was.Until.Equal(k.Until) && was.Rule == k.Rule {
		return
	}
	b := &Ban{Network: n, Source: s, Rule: k.Rule, Who: k.Who, Why: k.Why, Since: k.Since, Until: k.Until, Times: k.Times, Rejects: k.Rejects}
	if was != nil {
		b.refused.Store(was.refused.Load())
	}
	e.putLocked(b)
}

// followAgain is after how long a watch that ended is begun again.
const followAgain = 5 * time.Second

// follow takes what other nodes write.
func (e *Engine) follow(ctx context.Context, after store.Position) {
	for ctx.Err() == nil {
		for batch, err := range e.o.Store.Watch(ctx, store.PrefixBan, after) {
			if err != nil {
				if errors.Is(err, store.ErrTooOld) || errors.Is(err, store.ErrRewound) {
					after = e.restore(ctx)
				}
				break
			}
			after = batch.Position
			for i := range batch.Put {
				e.accept(batch.Put[i].Key, batch.Put[i].Value)
			}
			for _, key := range batch.Delete {
				e.accept(key, nil)
			}
		}
		timer := time.NewTimer(followAgain)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}
