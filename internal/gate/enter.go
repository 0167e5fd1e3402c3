package gate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/clock"
	"headgate/internal/credential"
	"headgate/internal/gate/provider"
	"headgate/internal/store"
)

// createSession makes a session, and ends the one that the browser had.
func (e *Engine) createSession(p *Person, issuer string, g provider.Grant, c *Client, old string) (string, *Session, error) {
	secret, now, u := credential.NewSecret(), e.time(), e.use.Load()
	at := now.UTC().Truncate(time.Second)
	s := newSession(digestOf(secret), p, issuer, c.Address, agentOf(c.Agent), at, at.Add(u.age))
	s.clocks(at, at, e.present())
	put := []store.Entry{{}}
	if g.Token != "" {
		s.refreshes.Store(true)
		s.refreshFor.Store(int32(g.Lifetime / time.Second))
		put = append(put, s.grantEntry(keptGrant{Grant: g}, now))
	}
	put[0] = s.entry(u.idle, now)
	revision, err := e.commit(store.Change{Put: put, Who: "headgate", Why: "signed in"})
	if err != nil {
		return "", nil, err
	}
	s.revision.Store(uint64(revision))
	s.foreign.Store(u.foreign(s))
	s = e.sessions.add(s)
	if IsSecret(old) {
		if h := e.sessions.find(digestOf(old)); h != nil && h.host == "" {
			e.endLogged(h.session)
		}
	}
	e.bound(p.ID)
	return secret, s, nil
}

// enter adds an application's host to a session and returns the secret for its cookie.
func (e *Engine) enter(s *Session, host string) (string, error) {
	host = strings.Clone(host) // it may be a view of the request
	s.mu.Lock()
	var spare []digest
	others := 0
	for c := s.next; c != nil; c = c.next {
		if others++; c.host == host { // the browser gets another cookie for the host
			spare = append(spare, c.key)
			others--
		}
	}
	full := others >= maxHosts
	s.mu.Unlock()
	if full {
		return "", fmt.Errorf("%w: the session has too many hosts", ErrUnavailable)
	}
	secret := credential.NewSecret()
	key := digestOf(secret)
	value, err := json.Marshal(keptSession{Parent: s.key.String(), Host: host, Created: e.time().UTC().Truncate(time.Second)})
	if err != nil {
		return "", err
	}
	change := store.Change{Put: []store.Entry{{Key: keyOf(key), Value: value, TTL: max(store.TTL(e.time(), s.Expires()), time.Second)}}, Who: "headgate", Why: "entered " + host}
	for _, d := range spare[:min(len(spare), store.MaxOperations-1)] {
		change.Delete = append(change.Delete, keyOf(d))
	}
	if _, err := e.commit(change); err != nil {
		return "", err
	}
	e.sessions.addHost(s, key, host)
	for _, d := range spare {
		e.dropHost(d)
	}
	return secret, nil
}

// dropHost removes the cookie of an application's host.
func (e *Engine) dropHost(key digest) {
	gone := e.sessions.find(key)
	if gone == nil || gone.host == "" {
		return
	}
	s := gone.session
	s.mu.Lock()
	for at := &s.next; *at != nil; at = &(*at).next {
		if *at == gone {
			*at = gone.next
			break
		}
	}
	s.mu.Unlock()
	e.sessions.drop(gone)
}

// bound ends the oldest sessions of a person who has too many.
func (e *Engine) bound(person string) {
	e.sessions.mu.Lock()
	own := e.sessions.of[person]
	many := own != nil && own.number > maxOfOne
	e.sessions.mu.Unlock()
	if !many {
		return
	}
	all := slices.DeleteFunc(e.sessions.all(), func(s *Session) bool { return s.Person().ID != person })
	slices.SortFunc(all, func(a, b *Session) int { return cmp.Compare(a.seen.Load(), b.seen.Load()) })
	for len(all) > maxOfOne {
		e.endLogged(all[0])
		all = all[1:]
	}
}

// SignOut ends a session, with those of all applications' hosts. Who is the operator who
// did it, "" for the person.
func (e *Engine) SignOut(s *Session, who string) error {
	if err := e.end(s, who); err != nil {
		return err
	}
	e.publish(Event{Kind: SignedOut, Person: s.Person().ID, Provider: s.Person().Provider, Who: who})
	return nil
}

// end ends a session in the store, then in memory, and aborts what is under way.
func (e *Engine) end(s *Session, who string) error {
	keys := []string{keyOf(s.key)}
	if s.refreshes.Load() {
		keys = append(keys, grantKey(s.key))
	}
	s.mu.Lock()
	for c := s.next; c != nil; c = c.next {
		keys = append(keys, keyOf(c.key))
	}
	s.mu.Unlock()
	// The session itself is in the first part: without it the others do not count.
	for len(keys) > 0 {
		n := min(len(keys), store.MaxOperations)
		if _, err := e.commit(store.Change{Delete: keys[:n], Who: cmp.Or(who, "headgate"), Why: "signed out"}); err != nil {
			return err
		}
		e.forget(s.key)
		keys = keys[n:]
	}
	return nil
}

func (e *Engine) endLogged(s *Session) {
	if err := e.end(s, ""); err != nil {
		e.o.Log.Warn("a session could not be ended", "session", s.ID(), "error", err)
	}
}

// forget ends a session in memory, and aborts what is under way.
func (e *Engine) forget(key digest) {
	if s := e.sessions.remove(key); s != nil && e.o.Cut != nil {
		e.o.Cut(s)
	}
}

// Sessions returns the sessions that count, the newest first.
func (e *Engine) Sessions() []*Session {
	now, idle := clock.Now(), e.use.Load().idle
	return slices.DeleteFunc(e.sessions.all(), func(s *Session) bool { return !s.live(now, idle) })
}

// Session returns the session with an id, nil if there is none.
func (e *Engine) Session(id string) *Session {
	for _, s := range e.sessions.all() {
		if s.ID() == id {
			return s
		}
	}
	return nil
}
