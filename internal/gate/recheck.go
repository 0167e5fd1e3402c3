package gate

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
	"headgate/internal/store"
)

// The times and limits of checking sessions again.
const (
	// recheckEvery is how often sessions are searched for those to check.
	recheckEvery = 5 * time.Second
	// rechecksAtOnce is how many sessions one node checks at the same time.
	rechecksAtOnce = 4
	// recheckRetry is how long a provider that could not confirm a session gets no other request.
	recheckRetry = time.Minute
	// claimAge is how long a node has for a check before another node may try.
	claimAge = time.Minute
)

// keptGrant is what checks a session again, as the store has it. It is apart from the session,
// because it is long and only needed once in a while.
type keptGrant struct {
	provider.Grant
	// Claimed is until when a node checks the session: a refresh token that two nodes use at the
	// same time looks stolen to a provider.
	Claimed time.Time `json:"claimed,omitzero"`
	// Checked is when the provider confirmed the session the last time.
	Checked time.Time `json:"checked,omitzero"`
}

func grantKey(d digest) string { return store.PrefixGateRefresh + d.String() }

// grantEntry returns the grant of a session as the store has it; now is the present time.
func (s *Session) grantEntry(g keptGrant, now time.Time) store.Entry {
	value, err := json.Marshal(g)
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return store.Entry{Key: grantKey(s.key), Value: value, TTL: max(store.TTL(now, s.Expires()), time.Second)}
}

// recheckLoop checks sessions again with their providers.
func (e *Engine) recheckLoop(ctx context.Context) {
	away := map[string]int64{} // when a provider could not confirm a session, by the clock of requests
	for {
		if clock.Sleep(ctx, recheckEvery); ctx.Err() != nil {
			return
		}
		e.noteDetached()
		e.recheckDue(ctx, away)
	}
}

// noteDetached computes which sessions do not count because this node may not know that they
// have ended.
func (e *Engine) noteDetached() {
	oldest, recheck := int64(math.MinInt64), e.use.Load().recheck
	if e.o.Detached != nil && recheck > 0 && e.o.Detached() > recheck {
		oldest = clock.Now() - int64(recheck)
	}
	e.oldest.Store(oldest)
}

// due reports whether a session is to be checked again. A refresh token that the provider accepts
// only for a short time is used when half of that time is over.
func (s *Session) due(now int64, recheck time.Duration) bool {
	if !s.refreshes.Load() || recheck == 0 {
		return false
	}
	if lifetime := time.Duration(s.refreshFor.Load()) * time.Second; lifetime > 0 {
		recheck = min(recheck, lifetime/2)
	}
	return now-s.confirmed.Load() >= int64(recheck)
}

// recheckDue checks the sessions whose time has come.
func (e *Engine) recheckDue(ctx context.Context, away map[string]int64) {
	now, u := clock.Now(), e.use.Load()
	if u.recheck == 0 {
		return
	}
	due := slices.DeleteFunc(e.sessions.all(), func(s *Session) bool { return !s.live(now, u.idle) || !s.due(now, u.recheck) })
	var mu sync.Mutex // of away
	var all sync.WaitGroup
	places := make(chan struct{}, rechecksAtOnce)
	for _, s := range due {
		name := s.Person().Provider
		mu.Lock()
		failed, skip := away[name]
		mu.Unlock()
		if skip = skip && now-failed < int64(recheckRetry); skip {
			e.endUnconfirmed(s, now, u.grace)
			continue
		}
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			err := e.recheck(ctx, u, s)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, provider.ErrUnavailable) {
				away[name] = clock.Now()
				e.endUnconfirmed(s, clock.Now(), u.grace)
			} else {
				delete(away, name)
			}
		})
	}
	all.Wait()
}

// endUnconfirmed ends a session that its provider has not confirmed for too long.
func (e *Engine) endUnconfirmed(s *Session, now int64, grace time.Duration) {
	if now-s.confirmed.Load() > int64(grace) {
		e.endByProvider(s, "the provider could not be reached for longer than recheck_grace")
	}
}

// endByProvider ends a session that its provider does not confirm.
func (e *Engine) endByProvider(s *Session, cause string) {
	p := s.Person()
	e.o.Log.Info("a session ends", "session", s.ID(), "person", p.ID, "reason", cause)
	if err := e.end(s, ""); err != nil {
		e.o.Log.Warn("a session could not be ended in the store", "session", s.ID(), "error", err)
	}
	e.forget(s.key) // also if the store is away
	e.publish(Event{Kind: SignedOut, Person: p.ID, Provider: p.Provider, Who: "headgate", Cause: cause})
}

// recheck has the provider of a session confirm it. The error wraps provider.ErrUnavailable if the
// provider has not decided.
func (e *Engine) recheck(ctx context.Context, u *inUse, s *Session) error {
	p := u.provider(s.Person().Provider)
	if p == nil || s.foreign.Load() {
		return nil
	}
	// A refresh that has been sent is not given up: the provider may have replaced the token.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), providerTimeout)
	defer stop()
	g, revision, err := e.claimGrant(ctx, s)
	if err != nil || g.Token == "" {
		return err
	}
	id, err := p.Refresh(ctx, s.Person().ID[len(p.Name())+1:], g.Grant)
	if errors.Is(err, provider.ErrRevoked) {
		e.endByProvider(s, err.Error())
		return nil
	}
	if err != nil {
		e.o.Log.Warn("a session cannot be checked with its provider", "provider", p.Name(), "session", s.ID(), "error", err)
	}
	next := g.Grant
	if id.Grant.Token != "" {
		next = id.Grant
	}
	kept := keptGrant{Grant: next, Checked: g.Checked} // without a claim, so that any node can try again
	if err == nil {
		kept.Checked = e.time().UTC()
	}
	if _, failed := e.commit(store.Change{If: []store.Condition{{Key: grantKey(s.key), Revision: revision}}, Put: []store.Entry{s.grantEntry(kept, e.time())}, Who: "headgate", Why: "session checked"}); failed != nil {
		return errors.Join(err, failed)
	}
	if err == nil {
		e.confirm(ctx, s, u.personOf(s.Person(), p, id), next)
	}
	return err
}

// claimGrant reads the grant of a session and claims it for this node. The token is empty if
// another node has it, or if the session has ended.
func (e *Engine) claimGrant(ctx context.Context, s *Session) (g keptGrant, revision store.Revision, err error) {
	entry, err := e.o.Store.Get(ctx, grantKey(s.key))
	if errors.Is(err, store.ErrNotFound) {
		return keptGrant{}, 0, nil
	}
	if err != nil {
		return keptGrant{}, 0, err
	}
	now := e.time()
	if json.Unmarshal(entry.Value, &g) != nil || now.Before(g.Claimed) {
		return keptGrant{}, 0, nil
	}
	if at := e.present().momentOf(g.Checked); !g.Checked.IsZero() && at > s.confirmed.Load() {
		s.confirmed.Store(at) // another node has just done it, and its session entry is on the way
		return keptGrant{}, 0, nil
	}
	claimed := keptGrant{Grant: g.Grant, Checked: g.Checked, Claimed: now.UTC().Add(claimAge)}
	revision, err = e.commit(store.Change{If: []store.Condition{{Key: entry.Key, Revision: entry.Revision}}, Put: []store.Entry{s.grantEntry(claimed, now)}, Who: "headgate", Why: "session being checked"})
	if errors.Is(err, ErrExpired) {
		return keptGrant{}, 0, nil // another node is faster
	}
	return g, revision, err
}

// personOf returns what is known of a person after a check.
func (u *inUse) personOf(was *Person, p *provider.Provider, id provider.Identity) *Person {
	next := newPerson(p.Name(), id)
	if !id.EmailUnknown && !id.GroupsUnknown {
		return next
	}
	kept := *was
	if !id.GroupsUnknown {
		kept.Groups = next.Groups
	}
	if !id.EmailUnknown {
		kept.Email, kept.User, kept.Name = next.Email, next.User, next.Name
	}
	return kept.ready()
}

// confirm notes that the provider has confirmed a session, and what it reports about the person,
// in memory and in the store.
func (e *Engine) confirm(ctx context.Context, s *Session, p *Person, g provider.Grant) {
	s.confirmed.Store(clock.Now())
	s.refreshFor.Store(int32(g.Lifetime / time.Second))
	if !samePerson(s.Person(), p) {
		s.setPerson(p)
		e.updateTokens(p, s.Issuer())
	}
	const attempts = 3 // other nodes write when the session was used
	for range attempts {
		revision, err := e.commit(store.Change{
			If: []store.Condition{{Key: keyOf(s.key), Revision: store.Revision(s.revision.Load())}}, Put: []store.Entry{s.entry(e.use.Load().idle, e.time())}, Who: "headgate", Why: "session confirmed by its provider",
		})
		if err == nil {
			s.revision.Store(uint64(revision))
			return
		}
		entry, missing := e.o.Store.Get(ctx, keyOf(s.key))
		switch {
		case errors.Is(missing, store.ErrNotFound):
			e.forget(s.key) // it was ended on another node
			return
		case missing != nil || !errors.Is(err, ErrExpired):
			return // the next check writes it
		}
		s.revision.Store(uint64(entry.Revision))
	}
}

// Confirmed returns when the provider of the session confirmed it last, and whether it is checked
// again.
func (s *Session) Confirmed() (at time.Time, again bool) {
	return clock.At(s.confirmed.Load()), s.refreshes.Load()
}

// RecheckOf returns how often sessions of a person are checked again, 0 for never. Sessions
// without a refresh token are not checked.
func (e *Engine) RecheckOf(p *Person) (every, grace time.Duration) {
	if p.Provider == people.Provider {
		return 0, 0
	}
	u := e.use.Load()
	return u.recheck, u.grace
}
