package gate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"headgate/internal/gate/people"
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

// texts keeps texts that many sessions have in memory once, such as hosts and browsers, and the
// lists of groups of people.
type texts struct {
	mu     sync.Mutex
	all    map[string]*string
	groups map[string][]string // by the joined list
}

// maxTexts is how many texts are kept; beyond, all are forgotten and collected anew.
const maxTexts = 10_000

// shared returns a text that was seen before, if it is the same.
func (t *texts) shared(text string) *string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.all[text]; ok {
		return known
	}
	if t.all == nil || len(t.all) >= maxTexts {
		t.all = map[string]*string{}
	}
	t.all[text] = &text
	return &text
}

// sharedGroups returns a list of groups that was seen before, if it is the same, and the joined
// list.
func (t *texts) sharedGroups(list []string, joined string) ([]string, string) {
	joined = *t.shared(joined)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.groups[joined]; ok && slices.Equal(known, list) {
		return known, joined
	}
	if t.groups == nil || len(t.groups) >= maxTexts {
		t.groups = map[string][]string{}
	}
	parts, rest := make([]string, len(list)), joined
	for i, g := range list {
		parts[i], rest = rest[:len(g)], strings.TrimPrefix(rest[len(g):], ",")
	}
	t.groups[joined] = parts
	return parts, joined
}

// shard has a part of the cookies by the first 64 bits of their digests: the whole digest is in
// the cookie, once, and is compared. Secrets are random, so that two do not meet there; if they
// did, the earlier cookie would count no more.
type shard struct {
	mu  sync.RWMutex
	all map[uint64]*cookie
}

func (t *sessions) init() {
	t.of = map[string]*sharing{}
	for i := range t.shards {
		t.shards[i].all = map[uint64]*cookie{}
	}
}

func (t *sessions) shard(d digest) *shard { return &t.shards[d[0]&63] }

func slot(d digest) uint64 { return binary.NativeEndian.Uint64(d[:]) }

// find returns the cookie with a digest, nil if there is none.
func (t *sessions) find(d digest) *cookie {
	s := t.shard(d)
	s.mu.RLock()
	c := s.all[slot(d)]
	s.mu.RUnlock()
	if c == nil || c.key != d {
		return nil
	}
	return c
}

func (t *sessions) put(c *cookie) {
	s := t.shard(c.key)
	s.mu.Lock()
	s.all[slot(c.key)] = c
	s.mu.Unlock()
}

func (t *sessions) drop(c *cookie) {
	s := t.shard(c.key)
	s.mu.Lock()
	if s.all[slot(c.key)] == c {
		delete(s.all, slot(c.key))
	}
	s.mu.Unlock()
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.number
}

// signIn returns the session with a secret of the sign-in host, nil if there is none.
func (t *sessions) signIn(d digest) *Session {
	if c := t.find(d); c != nil && c.host == "" {
		return c.session
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
	s.issuer, s.agent = t.texts.shared(*s.issuer), *t.texts.shared(s.agent)
	t.put(&s.cookie)
	return s
}

// sharedPerson returns a person whose groups and provider are in memory once for all people.
func (t *sessions) sharedPerson(p *Person) *Person {
	next := *p
	next.Provider = *t.texts.shared(p.Provider)
	next.Groups, next.groups = t.texts.sharedGroups(p.Groups, p.groups)
	if p.User == p.Email {
		next.User = p.Email
	}
	return &next
}

// addHost adds the cookie of an application's host to a session.
func (t *sessions) addHost(s *Session, key digest, host string) {
	c := &cookie{key: key, session: s, host: *t.texts.shared(host)}
	s.mu.Lock()
	for known := s.next; known != nil; known = known.next {
		if known.key == key { // what this node has written comes from the store, too
			s.mu.Unlock()
			return
		}
	}
	s.next, c.next = c, s.next
	s.mu.Unlock()
	t.put(c)
	if s.ended.Load() {
		t.drop(c) // it has ended meanwhile
	}
}

// remove ends a session in memory. It reports whether it was there.
func (t *sessions) remove(key digest) *Session {
	t.mu.Lock()
	s := t.signIn(key)
	if s != nil {
		t.drop(&s.cookie)
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
	for c := s.next; c != nil; c = c.next {
		t.drop(c)
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
		for _, c := range s.all {
			if c.host == "" {
				out = append(out, c.session)
			}
		}
		s.mu.RUnlock()
	}
	slices.SortFunc(out, func(a, b *Session) int {
		return cmp.Or(cmp.Compare(b.created, a.created), bytes.Compare(a.key[:], b.key[:]))
	})
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
	return p == nil || p.Issuer() != s.Issuer()
}
