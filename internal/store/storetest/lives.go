package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
)

// Life leads one random life of an engine against a model: changes with conditions, leases
// and times to live, the same change again, reads, reopening, moves to another engine and
// frozen stores. The seed decides what happens.
func Life(t *testing.T, seed uint64, open func(t *testing.T) Engine) {
	l := &life{t: t, r: rand.New(rand.NewPCG(seed, 1)), e: open(t), is: map[string]modelEntry{}, records: map[string][]string{}}
	l.s = l.e.Store
	t.Cleanup(func() { l.s.Close() })
	for step := range stepsOfLife {
		l.trail = append(l.trail, l.step())
		if t.Failed() {
			t.Fatalf("step %d; the last steps were %v", step, l.trail[max(0, len(l.trail)-12):])
		}
	}
	l.compare()
}

// stepsOfLife is how many things happen in one life.
const stepsOfLife = 60

// life is an engine with the model of what it has.
type life struct {
	t *testing.T
	r *rand.Rand
	e Engine
	s store.Store

	is      map[string]modelEntry
	records map[string][]string // of streams, the oldest first
	at      store.Position
	done    []committed // since from, for watches
	from    store.Position
	lease   *store.Lease
	ends    time.Time // of the lease, by the engine's clock
	serial  int
	trail   []string
}

type modelEntry struct {
	value    string
	revision store.Revision
	expires  time.Time
}

type committed struct {
	change   store.Change
	revision store.Revision
	gone     []string // keys that were there and were deleted
}

// step lets one thing happen, and returns its name.
func (l *life) step() string {
	switch n := l.r.IntN(20); {
	case n < 9:
		return l.commit()
	case n < 11:
		l.read()
		return "read"
	case n < 12:
		l.compare()
		return "compare"
	case n < 13:
		return l.twice()
	case n < 14:
		l.watch()
		return "watch"
	case n < 16:
		return l.leases()
	case n < 17:
		return l.advance()
	case n < 18:
		l.forget()
		l.release()
		l.s = l.e.Again(l.t)
		l.compare()
		return "reopen"
	case n < 19:
		return l.freeze()
	}
	return l.move()
}

func (l *life) now() time.Time {
	now, err := l.s.Now(l.t.Context())
	if err != nil {
		l.t.Errorf("Now: %v", err)
	}
	return now
}

// key returns a key of any kind, mostly one that is there.
func (l *life) key() string {
	if all := slices.Sorted(maps.Keys(l.is)); len(all) > 0 && l.r.IntN(3) == 0 {
		return all[l.r.IntN(len(all))]
	}
	all := keys()
	return all[l.r.IntN(len(all))]
}

// change makes up a change. conflict and fenced say what an engine answers.
func (l *life) change() (c store.Change, conflict, fenced bool) {
	used := map[string]bool{}
	for range 1 + l.r.IntN(3) {
		key := l.key()
		if used[key] {
			continue
		}
		used[key] = true
		if l.r.IntN(4) == 0 {
			c.Delete = append(c.Delete, key)
			continue
		}
		l.serial++
		e := store.Entry{Key: key, Value: fmt.Appendf(nil, "%d %s", l.serial, strings.Repeat("x", l.r.IntN(200)))}
		if l.r.IntN(5) == 0 {
			e.TTL = time.Duration(1+l.r.IntN(120)) * time.Minute
		}
		c.Put = append(c.Put, e)
	}
	for range l.r.IntN(3) {
		l.serial++
		c.Append = append(c.Append, store.Record{Stream: []string{"audit", "events"}[l.r.IntN(2)], Data: fmt.Append(nil, l.serial)})
	}
	for range l.r.IntN(3) {
		key := l.key()
		if slices.ContainsFunc(c.If, func(o store.Condition) bool { return o.Key == key }) {
			continue
		}
		is := store.Condition{Key: key, Revision: l.is[key].revision}
		if l.r.IntN(6) == 0 {
			is.Revision += store.Revision(1 + l.r.IntN(2))
			conflict = true
		}
		c.If = append(c.If, is)
	}
	if l.lease != nil && l.r.IntN(2) == 0 {
		c.Under = l.lease
		fenced = !l.now().Before(l.ends)
	}
	c.ID = store.NewID()
	return c, conflict, fenced
}

func (l *life) commit() string {
	c, conflict, fenced := l.change()
	revision, err := l.s.Commit(l.t.Context(), c)
	var is *store.Conflict
	switch {
	case fenced || conflict:
		if !errors.As(err, &is) && !errors.Is(err, store.ErrFenced) || conflict && !fenced && !errors.As(err, &is) || fenced && !conflict && !errors.Is(err, store.ErrFenced) {
			l.t.Errorf("a commit (conflict %t, fenced %t) = %d, %v", conflict, fenced, revision, err)
		}
		return "refused commit"
	case err != nil:
		l.t.Errorf("a commit = %v", err)
		return "commit"
	}
	if l.at.Revision != 0 && revision != l.at.Revision+1 {
		l.t.Errorf("a commit has revision %d after %d", revision, l.at.Revision)
	}
	l.apply(c, revision)
	return "commit"
}

// apply makes a change in the model.
func (l *life) apply(c store.Change, revision store.Revision) {
	d := committed{change: c, revision: revision}
	for _, key := range c.Delete {
		if _, ok := l.is[key]; ok {
			d.gone = append(d.gone, key)
		}
		delete(l.is, key)
	}
	for _, e := range c.Put {
		got, err := l.s.Get(l.t.Context(), e.Key)
		if err != nil {
			l.t.Errorf("Get(%s) after its commit: %v", e.Key, err)
			continue
		}
		if want := e.TTL; want != 0 && !got.Expires.Equal(got.Modified.Add(want)) || want == 0 && !got.Expires.IsZero() {
			l.t.Errorf("%s with a time to live of %s expires at %v, and was modified at %v", e.Key, want, got.Expires, got.Modified)
		}
		l.is[e.Key] = modelEntry{string(e.Value), revision, got.Expires}
	}
	for _, r := range c.Append {
		l.records[r.Stream] = append(l.records[r.Stream], string(r.Data))
	}
	l.at = store.Position{Revision: revision, ID: c.ID}
	l.done = append(l.done, d)
}

// twice commits the last change again, whose answer might have been lost.
func (l *life) twice() string {
	if len(l.done) == 0 || l.done[len(l.done)-1].change.Under != nil {
		return "nothing twice"
	}
	last := l.done[len(l.done)-1]
	if revision, err := l.s.Commit(l.t.Context(), last.change); err != nil || revision != last.revision {
		l.t.Errorf("the same change again = %d, %v; want %d", revision, err, last.revision)
	}
	l.compare()
	return "twice"
}

// read compares one key, a list and a page.
func (l *life) read() {
	key := l.key()
	got, err := l.s.Get(l.t.Context(), key)
	want, ok := l.is[key]
	switch {
	case !ok && !errors.Is(err, store.ErrNotFound), ok && err != nil, ok && (string(got.Value) != want.value || got.Revision != want.revision):
		l.t.Errorf("Get(%s) = %q of %d, %v; want %+v, %t", key, got.Value, got.Revision, err, want, ok)
	}
	prefix := key[:1+l.r.IntN(len(key))]
	var listed []string
	for after := ""; ; {
		n := 1 + l.r.IntN(4)
		page, err := l.s.List(l.t.Context(), prefix, after, n)
		if err != nil {
			l.t.Errorf("List(%s): %v", prefix, err)
			return
		}
		for _, m := range page {
			listed = append(listed, m.Key)
			if m.Size != len(l.is[m.Key].value) || m.Revision != l.is[m.Key].revision {
				l.t.Errorf("List has %+v; want %+v", m, l.is[m.Key])
			}
		}
		if len(page) < n {
			break
		}
		after = page[n-1].Key
	}
	var expected []string
	for _, k := range slices.Sorted(maps.Keys(l.is)) {
		if strings.HasPrefix(k, prefix) {
			expected = append(expected, k)
		}
	}
	if !slices.Equal(listed, expected) {
		l.t.Errorf("List(%s) = %v, want %v", prefix, listed, expected)
	}
}

// compare looks at everything that there is.
func (l *life) compare() {
	all, at, err := l.s.Snapshot(l.t.Context(), "")
	if err != nil {
		l.t.Errorf("Snapshot: %v", err)
		return
	}
	if l.at.Revision != 0 && at != l.at {
		l.t.Errorf("the position is %+v, want %+v", at, l.at)
	}
	got := map[string]modelEntry{}
	for _, e := range all {
		got[e.Key] = modelEntry{string(e.Value), e.Revision, e.Expires}
	}
	for key, want := range l.is {
		if have, ok := got[key]; !ok || have.value != want.value || have.revision != want.revision || !have.expires.Equal(want.expires) {
			l.t.Errorf("%s is %+v, want %+v", key, have, want)
		}
	}
	if len(got) != len(l.is) {
		l.t.Errorf("there are %d entries, want %d", len(got), len(l.is))
	}
	for stream, want := range l.records {
		page, err := l.s.Page(l.t.Context(), stream, 0, store.MaxPage)
		if err != nil || len(page) != len(want) {
			l.t.Errorf("stream %s has %d records, %v; want %d", stream, len(page), err, len(want))
			continue
		}
		for i, r := range page {
			if n := len(want) - 1 - i; string(r.Data) != want[n] || r.Sequence != store.Sequence(n+1) {
				l.t.Errorf("record %d of %s is %q with sequence %d, want %q", i, stream, r.Data, r.Sequence, want[n])
			}
		}
	}
}

// watch reads what was committed since the position that the model remembers.
func (l *life) watch() {
	if l.from.Revision == 0 || len(l.done) == 0 {
		l.from, l.done = l.at, nil
		return
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	i := 0
	for b, err := range l.s.Watch(ctx, "", l.from) {
		if err != nil {
			l.t.Errorf("a watch from %+v after %d batches: %v", l.from, i, err)
			return
		}
		want := l.done[i]
		if b.Revision != want.revision || b.ID != want.change.ID || len(b.Put) != len(want.change.Put) {
			l.t.Errorf("batch %d is %+v, want that of revision %d", i, b.Position, want.revision)
			return
		}
		for _, e := range want.change.Put {
			if !slices.ContainsFunc(b.Put, func(o store.Entry) bool { return o.Key == e.Key && string(o.Value) == string(e.Value) }) {
				l.t.Errorf("batch %d does not have %s", i, e.Key)
			}
		}
		for _, key := range want.gone {
			if !slices.Contains(b.Delete, key) {
				l.t.Errorf("batch %d does not have the deletion of %s", i, key)
			}
		}
		if i++; i == len(l.done) {
			break
		}
	}
	l.from, l.done = l.at, nil
}

// leases acquires the lease, looks whether another one can, or releases it.
func (l *life) leases() string {
	if l.lease == nil {
		ttl := time.Duration(1+l.r.IntN(30)) * time.Minute
		before := l.now()
		lease, err := l.s.Acquire(l.t.Context(), "acme/a", ttl)
		if err != nil {
			l.t.Errorf("Acquire: %v", err)
			return "acquire"
		}
		l.lease, l.ends = lease, before.Add(ttl)
		return "acquire"
	}
	if !l.now().Before(l.ends) || l.r.IntN(2) == 0 {
		l.release()
		return "release"
	}
	var held *store.Held
	if other, err := l.s.Acquire(l.t.Context(), "acme/a", time.Minute); !errors.As(err, &held) {
		l.t.Errorf("a lease that is held = %v, %v", other, err)
	}
	return "held"
}

func (l *life) release() {
	if l.lease != nil {
		l.lease.Release(l.t.Context())
		l.lease = nil
	}
}

// advance lets time pass by minutes and hours: entries and the lease may end.
func (l *life) advance() string {
	// The engine and the model round the end of a lease in their own ways: none is close.
	d := time.Duration(1+l.r.IntN(180))*time.Minute + 30*time.Second
	if l.lease != nil && l.r.IntN(2) == 0 {
		l.release()
	}
	l.e.Advance(d)
	now := l.now()
	for key, e := range l.is {
		if !e.expires.IsZero() && !now.Before(e.expires) {
			delete(l.is, key)
		}
	}
	l.forget()
	return "advance"
}

// forget has the model read the position again: what has expired may be a commit of the
// engine.
func (l *life) forget() {
	_, at, err := l.s.Snapshot(l.t.Context(), "node/")
	if err != nil || at.Revision < l.at.Revision {
		l.t.Errorf("the position went from %d to %d, %v", l.at.Revision, at.Revision, err)
	}
	l.at, l.from, l.done = at, at, nil
}

// freeze refuses a change, and lets changes be made again.
func (l *life) freeze() string {
	if err := l.s.Freeze(l.t.Context(), "elsewhere"); err != nil {
		l.t.Errorf("Freeze: %v", err)
	}
	c, _, _ := l.change()
	c.If, c.Under = nil, nil
	if revision, err := l.s.Commit(l.t.Context(), c); !errors.Is(err, store.ErrMoved) {
		l.t.Errorf("a commit to a frozen store = %d, %v", revision, err)
	}
	if err := l.s.Freeze(l.t.Context(), ""); err != nil {
		l.t.Errorf("Freeze(\"\"): %v", err)
	}
	l.forget()
	return "freeze"
}

// move lets another engine go on with what this one has.
func (l *life) move() string {
	if l.at.Revision == 0 {
		return "nothing to move"
	}
	l.release()
	l.forget()
	other := l.e.Other(l.t)
	if err := other.Store.Import(l.t.Context(), l.s.Export(l.t.Context())); err != nil {
		l.t.Errorf("Import: %v", err)
		return "move"
	}
	l.s.Close()
	l.e, l.s = other, other.Store
	l.compare()
	return "move"
}
