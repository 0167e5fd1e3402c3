package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/credential"
	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
	"headgate/internal/store"
)

// Session is a sign-in of a person in one browser.
type Session struct {
	// constant

	// Issuer is the provider's URL when the person signed in.
	Issuer string
	// Address and Agent are of the browser that signed in.
	Address, Agent string
	// Created is when, and Expires when it ends at the latest.
	Created, Expires time.Time

	key     digest
	expires int64 // the same as Expires, by the clock of requests

	person   atomic.Pointer[Person] // who signed in; another one of the same ID when what is known of the person changes
	seen     atomic.Int64           // when it was used last, by the clock of requests
	kept     atomic.Int64           // seen as the store has it
	dirty    atomic.Bool            // seen is to be written
	ended    atomic.Bool
	revision atomic.Uint64 // of the entry in the store
	foreign  atomic.Bool   // the provider in use is not the one that it came through

	confirmed  atomic.Int64 // when the provider confirmed it last, by the clock of requests
	refreshes  atomic.Bool  // it is checked again: the store has a refresh token
	refreshFor atomic.Int32 // how long the refresh token can be used, in seconds; 0 is not known

	mu    sync.Mutex
	hosts []hostKey // those of applications; a session has few
}

// hostKey is an application's host in a session, and what is kept of the secret of its cookie.
type hostKey struct {
	key  digest
	host string
}

// Person returns who signed in, with the groups and the address that the person has now.
func (s *Session) Person() *Person { return s.person.Load() }

// setPerson replaces what is known of the person of the session, who stays the same.
func (s *Session) setPerson(p *Person) { s.person.Store(p) }

// ID returns what people and the API call the session.
func (s *Session) ID() string { return s.key.String()[:16] }

// Ended reports whether the session was ended. One whose time is over has not been ended
// yet.
func (s *Session) Ended() bool { return s.ended.Load() }

// Seen returns when the session was used last.
func (s *Session) Seen() time.Time { return clock.At(s.seen.Load()) }

// Live reports whether the session counts at a moment of the clock of requests.
func (s *Session) live(now int64, idle time.Duration) bool {
	return !s.ended.Load() && !s.foreign.Load() && now < s.expires && now-s.seen.Load() <= int64(idle)
}

// The limits of sessions. Only people who have signed in can make any.
const (
	// maxOfOne is how many sessions one person has; beyond, the one that was used longest
	// ago ends.
	maxOfOne = 50
	// maxHosts is how many applications one session has.
	maxHosts = 500
	// maxAgent is how much is kept of what a browser reports about itself.
	maxAgent = 200
)

// sessions are all sessions by the digest of their secrets. Requests look only at shards.
type sessions struct {
	shards [64]shard

	mu     sync.Mutex
	number int                 // of sessions
	of     map[string]*sharing // by the person's id
	texts  texts
}

// sharing is what the sessions of one person have in common, so that it is in memory once.
type sharing struct {
	number int // of sessions
	person *Person
}

// texts keeps texts that many sessions have in memory once, such as hosts and browsers.
type texts struct {
	mu  sync.Mutex
	all map[string]string
}

// maxTexts is how many texts are kept; beyond, all are forgotten and collected anew.
const maxTexts = 10_000

// shared returns a text that was seen before, if it is the same.
func (t *texts) shared(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.all[text]; ok {
		return known
	}
	if t.all == nil || len(t.all) >= maxTexts {
		t.all = map[string]string{}
	}
	t.all[text] = text
	return text
}

type shard struct {
	mu  sync.RWMutex
	all map[digest]held
}

// held is a session as one host has it; the host is "" for the sign-in host.
type held struct {
	session *Session
	host    string
}

func (t *sessions) init() {
	t.of = map[string]*sharing{}
	for i := range t.shards {
		t.shards[i].all = map[digest]held{}
	}
}

func (t *sessions) shard(d digest) *shard { return &t.shards[d[0]&63] }

func (t *sessions) find(d digest) held {
	s := t.shard(d)
	s.mu.RLock()
	h := s.all[d]
	s.mu.RUnlock()
	return h
}

func (t *sessions) put(d digest, h held) {
	s := t.shard(d)
	s.mu.Lock()
	s.all[d] = h
	s.mu.Unlock()
}

func (t *sessions) drop(d digest) {
	s := t.shard(d)
	s.mu.Lock()
	delete(s.all, d)
	s.mu.Unlock()
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.number
}

// signIn returns the session with a secret of the sign-in host, nil if there is none.
func (t *sessions) signIn(d digest) *Session {
	if h := t.find(d); h.host == "" {
		return h.session
	}
	return nil
}

// add adds a session, unless it is there: what others have written comes from the store,
// too. It returns the one that counts.
func (t *sessions) add(s *Session) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.signIn(s.key); known != nil {
		return known
	}
	t.number++
	id := s.Person().ID
	own := t.of[id]
	if own == nil {
		own = &sharing{}
		t.of[id] = own
	}
	own.number++
	if p := s.Person(); own.person != nil && samePerson(own.person, p) {
		s.setPerson(own.person)
	} else {
		own.person = t.sharedPerson(p)
		s.setPerson(own.person)
	}
	s.Issuer, s.Agent = t.texts.shared(s.Issuer), t.texts.shared(s.Agent)
	t.put(s.key, held{s, ""})
	return s
}

// sharedPerson returns a person whose groups and provider are in memory once for all people.
func (t *sessions) sharedPerson(p *Person) *Person {
	next := *p
	next.Provider, next.groups, next.domain = t.texts.shared(p.Provider), t.texts.shared(p.groups), t.texts.shared(p.domain)
	next.Groups = make([]string, len(p.Groups))
	for i, g := range p.Groups {
		next.Groups[i] = t.texts.shared(g)
	}
	if p.User == p.Email {
		next.User = p.Email
	}
	return &next
}

// addHost adds the cookie of an application's host to a session.
func (t *sessions) addHost(s *Session, key digest, host string) {
	host = t.texts.shared(host)
	s.mu.Lock()
	// What this node has written comes from the store, too.
	if !slices.ContainsFunc(s.hosts, func(h hostKey) bool { return h.key == key }) {
		s.hosts = append(s.hosts, hostKey{key, host})
	}
	s.mu.Unlock()
	t.put(key, held{s, host})
	if s.ended.Load() {
		t.drop(key) // it has ended meanwhile
	}
}

// remove ends a session in memory. It reports whether it was there.
func (t *sessions) remove(key digest) *Session {
	t.mu.Lock()
	s := t.signIn(key)
	if s != nil {
		t.drop(key)
		t.number--
		id := s.Person().ID
		if own := t.of[id]; own != nil {
			if own.number--; own.number <= 0 {
				delete(t.of, id)
			}
		}
	}
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	s.ended.Store(true)
	s.mu.Lock()
	for _, h := range s.hosts {
		t.drop(h.key)
	}
	s.mu.Unlock()
	return s
}

// all returns the sessions, the newest first.
func (t *sessions) all() []*Session {
	out := make([]*Session, 0, t.count())
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		for _, h := range s.all {
			if h.host == "" {
				out = append(out, h.session)
			}
		}
		s.mu.RUnlock()
	}
	slices.SortFunc(out, func(a, b *Session) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID(), b.ID())) })
	return out
}

// recheck notes which sessions came through a provider that is not in use as it was.
func (t *sessions) recheck(u *inUse) {
	for _, s := range t.all() {
		s.foreign.Store(u.foreign(s))
	}
}

// foreign reports whether a session came through a provider that is not in use as it was.
func (u *inUse) foreign(s *Session) bool {
	if s.Person().Provider == people.Provider {
		return !u.knows(s)
	}
	p := u.provider(s.Person().Provider)
	return p == nil || p.Issuer() != s.Issuer
}

// Host returns the session that a cookie of an application's host belongs to, nil if it
// belongs to none that counts. Now is the moment of the request.
func (e *Engine) Host(cookie, host string, now int64) *Session {
	if len(cookie) != SecretLength {
		return nil
	}
	h := e.sessions.find(digestOf(cookie))
	if h.session == nil || h.host == "" || h.host != host {
		return nil
	}
	return e.touch(h.session, now)
}

// SignedIn returns the session of a cookie of the sign-in host, nil if none counts.
func (e *Engine) SignedIn(cookie string, now int64) *Session {
	if !IsSecret(cookie) {
		return nil
	}
	h := e.sessions.find(digestOf(cookie))
	if h.session == nil || h.host != "" {
		return nil
	}
	return e.touch(h.session, now)
}

// writesOfIdle is how many times the last use of a session is written at most in its
// idle_timeout.
const writesOfIdle = 12

// touch notes that a session is used, if it counts.
func (e *Engine) touch(s *Session, now int64) *Session {
	idle := e.use.Load().idle
	if !s.live(now, idle) || s.confirmed.Load() < e.oldest.Load() {
		return nil
	}
	if now > s.seen.Load() {
		s.seen.Store(now)
	}
	if now-s.kept.Load() > int64(idle)/writesOfIdle && !s.dirty.Swap(true) {
		s.kept.Store(now)
	}
	return s
}

// HasHost reports whether a session has been used at an application's host.
func (s *Session) HasHost(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hosts, func(h hostKey) bool { return h.host == host })
}

// keptSession is a session as the store has it; Parent and Host are those of an
// application's host, which has nothing else but Created.
type keptSession struct {
	Parent  string    `json:"parent,omitempty"`
	Host    string    `json:"host,omitempty"`
	Person  *Person   `json:"person,omitempty"`
	Issuer  string    `json:"issuer,omitempty"`
	Address string    `json:"address,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Confirmed is when the provider confirmed the session last; the zero time is that of
	// Created. Refreshes is whether it is checked again, RefreshFor the lifetime of the refresh
	// token in seconds.
	Confirmed  time.Time `json:"confirmed,omitzero"`
	Refreshes  bool      `json:"refreshes,omitempty"`
	RefreshFor int32     `json:"refresh_for,omitempty"`
}

func keyOf(d digest) string { return store.PrefixGateSession + d.String() }

// createSession makes a session, and ends the one that the browser had.
func (e *Engine) createSession(p *Person, issuer string, g provider.Grant, c *Client, old string) (string, *Session, error) {
	secret, at, u := credential.NewSecret(), time.Now().UTC().Truncate(time.Second), e.use.Load()
	s := &Session{Issuer: issuer, Address: c.Address.String(), Agent: agentOf(c.Agent), Created: at, Expires: at.Add(u.age), key: digestOf(secret)}
	s.setPerson(p)
	s.clocks(at, at)
	put := []store.Entry{{}}
	if g.Token != "" {
		s.refreshes.Store(true)
		s.refreshFor.Store(int32(g.Lifetime / time.Second))
		put = append(put, s.grantEntry(keptGrant{Grant: g}))
	}
	put[0] = s.entry(u.idle)
	revision, err := e.commit(store.Change{Put: put, Who: "headgate", Why: "signed in"})
	if err != nil {
		return "", nil, err
	}
	s.revision.Store(uint64(revision))
	s.foreign.Store(u.foreign(s))
	s = e.sessions.add(s)
	if IsSecret(old) {
		if h := e.sessions.find(digestOf(old)); h.session != nil && h.host == "" {
			e.endLogged(h.session)
		}
	}
	e.bound(p.ID)
	return secret, s, nil
}

func agentOf(text string) string {
	b := []byte(text[:min(len(text), maxAgent)])
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// clocks sets what the clock of requests has to know.
func (s *Session) clocks(seen, confirmed time.Time) {
	now, wall := clock.Now(), time.Now()
	s.expires = now + int64(s.Expires.Sub(wall))
	at := now - int64(wall.Sub(seen))
	s.seen.Store(at)
	s.kept.Store(at)
	s.confirmed.Store(now - int64(wall.Sub(confirmed)))
}

// entry returns the session as the store has it. The store forgets it when it has not been
// used for the idle time, with what may not have been written.
func (s *Session) entry(idle time.Duration) store.Entry {
	value, err := json.Marshal(keptSession{Person: s.Person(), Issuer: s.Issuer, Address: s.Address, Agent: s.Agent, Created: s.Created, Seen: s.Seen().UTC(), Expires: s.Expires,
		Confirmed: clock.At(s.confirmed.Load()).UTC(), Refreshes: s.refreshes.Load(), RefreshFor: s.refreshFor.Load()})
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	now := time.Now()
	ttl := min(store.TTL(now, s.Expires), store.TTL(now, s.Seen().Add(idle+idle/writesOfIdle+time.Minute)))
	return store.Entry{Key: keyOf(s.key), Value: value, TTL: max(ttl, time.Second)}
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

// enter adds an application's host to a session and returns the secret for its cookie.
func (e *Engine) enter(s *Session, host string) (string, error) {
	host = strings.Clone(host) // it may be a view of the request
	s.mu.Lock()
	var spare []digest
	for _, h := range s.hosts {
		if h.host == host { // the browser gets another cookie for the host
			spare = append(spare, h.key)
		}
	}
	full := len(s.hosts) >= maxHosts+len(spare)
	s.mu.Unlock()
	if full {
		return "", fmt.Errorf("%w: the session has too many hosts", ErrUnavailable)
	}
	secret := credential.NewSecret()
	key := digestOf(secret)
	value, err := json.Marshal(keptSession{Parent: s.key.String(), Host: host, Created: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return "", err
	}
	change := store.Change{Put: []store.Entry{{Key: keyOf(key), Value: value, TTL: max(store.TTL(time.Now(), s.Expires), time.Second)}}, Who: "headgate", Why: "entered " + host}
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
	if h := e.sessions.find(key); h.session != nil && h.host != "" {
		h.session.mu.Lock()
		h.session.hosts = slices.DeleteFunc(h.session.hosts, func(k hostKey) bool { return k.key == key })
		h.session.mu.Unlock()
		e.sessions.drop(key)
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
	for _, h := range s.hosts {
		keys = append(keys, keyOf(h.key))
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

// Hosts returns the hosts of applications that a session has been used at.
func (s *Session) Hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, h := range s.hosts {
		out = append(out, h.host)
	}
	slices.Sort(out)
	return slices.Compact(out)
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
