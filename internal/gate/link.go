package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// LinkPath is followed by the secret of a share link.
const LinkPath = Reserve + "/s/"

// CookieLink is followed by a part of the id of a visit: the cookie of a browser that has
// opened a share link.
const CookieLink = CookiePrefix + "link-"

// Link is a share link: a client that has its address can open one path of an application, and
// everything below it, without signing in. Opening it makes a Visit.
type Link struct {
	// ID identifies the link. It is not the secret.
	ID string `json:"id"`
	// Origin is the scheme, host and port of what the link opens.
	Origin string `json:"origin"`
	// Host is the host of what the link opens.
	Host string `json:"host"`
	// Path is the path that the link opens, with everything below it.
	Path string `json:"path"`
	// Writes is whether methods other than GET and HEAD, and WebSockets, are allowed.
	Writes bool `json:"writes,omitempty"`
	// Uses is how many times it can still be opened; 0 is any number of times.
	Uses int `json:"uses,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Created is when the link was created.
	Created time.Time `json:"created"`
	// CreatedBy is the operator who created it.
	CreatedBy string `json:"created_by,omitempty"`
	// Expires is when the link ends.
	Expires time.Time `json:"expires"`
}

// Visit is the use of a share link in one browser.
type Visit struct {
	link    Link
	key     digest
	prefix  string // of paths, without a slash at the end
	expires int64  // by the clock of requests
	ended   atomic.Bool
}

// Ended reports whether the visit was ended, or its time is over.
func (v *Visit) Ended() bool { return v.ended.Load() }

// User returns what the access log calls the visitor.
func (v *Visit) User() string { return "link:" + v.link.ID }

// Covers reports whether a request is part of what was shared. Reads is whether its method
// only reads.
func (v *Visit) Covers(host, path string, reads bool) bool {
	return v.link.Host == host && (reads || v.link.Writes) && Below(path, []string{v.prefix})
}

// The limits of share links.
const (
	maxLinks  = 10_000
	maxVisits = 100_000
	maxUses   = 1000
	// MaxLinkAge is how long a share link lasts at most.
	MaxLinkAge = 366 * 24 * time.Hour
)

// links are all share links and visits. Requests look only at visits.
type links struct {
	mu     sync.RWMutex
	links  map[digest]*Link
	visits map[digest]*Visit
}

func (t *links) init() { t.links, t.visits = map[digest]*Link{}, map[digest]*Visit{} }

func linkKey(d digest) string  { return store.PrefixGateLink + d.String() }
func visitKey(d digest) string { return store.PrefixGateVisit + d.String() }

// CreateLink makes a share link of the address of an application behind a gate, and returns
// it with its address. With dry nothing is kept.
func (e *Engine) CreateLink(address string, l Link, dry bool) (*Link, string, error) {
	site, known := e.Find(Return{URL: address})
	path, _, query := strings.Cut(site.Path, "?")
	switch {
	case !known:
		return nil, "", &Invalid{"url", "the address does not lead to an application behind a gate", "write https://HOST/PATH of a route with a gate"}
	case query:
		return nil, "", &Invalid{"url", "a link is for a path, with all queries", "remove ? and what follows it"}
	case l.Uses < 0 || l.Uses > maxUses:
		return nil, "", &Invalid{"uses", "invalid number of uses", fmt.Sprintf("write 0 for any number, or up to %d", maxUses)}
	case !l.Expires.After(e.time()) || l.Expires.Sub(e.time()) > MaxLinkAge:
		return nil, "", &Invalid{"expires", "the time is not in the next 366 days", "write another time"}
	}
	if err := checkDescription(l.Description); err != nil {
		return nil, "", err
	}
	if _, err := NormalPath(path); err != nil {
		return nil, "", &Invalid{"url", err.Error(), "write another path"}
	}
	e.links.mu.RLock()
	full := len(e.links.links) >= maxLinks
	e.links.mu.RUnlock()
	if full {
		return nil, "", fmt.Errorf("%d share links: %w", maxLinks, ErrTooMany)
	}
	secret := credential.NewSecret()
	d := digestOf(secret)
	l.ID, l.Origin, l.Host, l.Path = d.String()[:16], site.Origin, site.Host, path
	l.Created, l.Expires = e.time().UTC().Truncate(time.Second), l.Expires.UTC()
	if dry {
		return &l, "", nil
	}
	if _, err := e.commit(store.Change{Put: []store.Entry{l.entry(linkKey(d), e.time())}, Who: l.CreatedBy, Why: "made a share link"}); err != nil {
		return nil, "", err
	}
	e.links.mu.Lock()
	e.links.links[d] = &l
	e.links.mu.Unlock()
	return &l, l.Origin + LinkPath + secret, nil
}

// entry returns a link, or a visit of it, as the store has it; now is the present time.
func (l *Link) entry(key string, now time.Time) store.Entry {
	value, err := json.Marshal(l)
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return store.Entry{Key: key, Value: value, TTL: max(store.TTL(now, l.Expires), time.Second)}
}

// FindLink returns the share link with a secret at an origin, nil if there is none. It does
// not use it up.
func (e *Engine) FindLink(secret, origin string) *Link {
	if !IsSecret(secret) {
		return nil
	}
	e.links.mu.RLock()
	defer e.links.mu.RUnlock()
	l := e.links.links[digestOf(secret)]
	if l == nil || l.Origin != origin || !e.time().Before(l.Expires) {
		return nil
	}
	return l
}

// OpenLink counts a use of a share link, and returns the cookie of the visit and the address
// to go to. The last use deletes the link, under the condition that no other has done it.
func (e *Engine) OpenLink(secret, origin string) (cookie, to string, err error) {
	if !IsSecret(secret) {
		return "", "", ErrExpired
	}
	d := digestOf(secret)
	for range maxUses { // each round that fails is a use by another client
		ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
		entry, err := e.o.Store.Get(ctx, linkKey(d))
		stop()
		switch {
		case errors.Is(err, store.ErrNotFound):
			return "", "", ErrExpired
		case err != nil:
			e.o.Log.Warn("a share link cannot be read", "error", err)
			return "", "", ErrUnavailable
		}
		var l Link
		if json.Unmarshal(entry.Value, &l) != nil || l.Origin != origin || !e.time().Before(l.Expires) {
			return "", "", ErrExpired
		}
		value := credential.NewSecret()
		v := newVisit(l, digestOf(value), e.present())
		change := store.Change{If: []store.Condition{{Key: linkKey(d), Revision: entry.Revision}}, Put: []store.Entry{l.entry(visitKey(v.key), e.time())}, Who: "headgate", Why: "opened a share link"}
		left := l
		switch {
		case l.Uses == 1:
			change.Delete = []string{linkKey(d)}
		case l.Uses > 1:
			left.Uses--
			change.Put = append(change.Put, left.entry(linkKey(d), e.time()))
		}
		_, err = e.commit(change)
		if errors.Is(err, ErrExpired) {
			continue
		} else if err != nil {
			return "", "", err
		}
		e.links.mu.Lock()
		if l.Uses == 1 {
			delete(e.links.links, d)
		} else if e.links.links[d] != nil {
			e.links.links[d] = &left
		}
		e.links.visits[v.key] = v
		e.links.mu.Unlock()
		return SetCookie(CookieLink+v.key.String()[:8], value, l.Expires.Sub(e.time())), l.Origin + l.Path, nil
	}
	return "", "", ErrUnavailable
}

// newVisit returns a visit of a link.
func newVisit(l Link, key digest, p present) *Visit {
	return &Visit{link: l, key: key, prefix: strings.TrimSuffix(l.Path, "/"), expires: p.momentOf(l.Expires)}
}

// Visit returns the visit of a cookie, nil if none counts.
func (e *Engine) Visit(cookie string, now int64) *Visit {
	if len(cookie) != SecretLength {
		return nil
	}
	e.links.mu.RLock()
	v := e.links.visits[digestOf(cookie)]
	e.links.mu.RUnlock()
	if v == nil || v.ended.Load() || now >= v.expires {
		return nil
	}
	return v
}

// ShownLink is a share link with the number of its visits.
type ShownLink struct {
	Link
	// Visits is how many browsers have opened it and may go on.
	Visits int
	// Used is whether it cannot be opened any more.
	Used bool
}

// Links returns the share links, the newest first, with those whose visits go on.
func (e *Engine) Links() []ShownLink {
	e.links.mu.RLock()
	defer e.links.mu.RUnlock()
	all := map[string]*ShownLink{}
	for _, l := range e.links.links {
		all[l.ID] = &ShownLink{Link: *l}
	}
	for _, v := range e.links.visits {
		s := all[v.link.ID]
		if s == nil {
			s = &ShownLink{Link: v.link, Used: true}
			s.Uses, all[v.link.ID] = 0, s
		}
		s.Visits++
	}
	var out []ShownLink
	for _, s := range slices.SortedFunc(maps.Values(all), func(a, b *ShownLink) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	}) {
		out = append(out, *s)
	}
	return out
}

// RevokeLink ends a share link with all its visits.
func (e *Engine) RevokeLink(id, who string, dry bool) error {
	var keys []string
	e.links.mu.RLock()
	for d, l := range e.links.links {
		if l.ID == id {
			keys = append(keys, linkKey(d))
		}
	}
	e.links.mu.RUnlock()
	if len(keys) > 0 && !dry { // first: no visit is made after it
		if _, err := e.commit(store.Change{Delete: keys, Who: who, Why: "revoked a share link"}); err != nil {
			return err
		}
	}
	visits, err := e.visitKeys(id) // this node may not have heard of all
	if err != nil {
		return err
	}
	keys = append(keys, visits...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return fmt.Errorf("share link %.64s: %w", id, ErrNotFound)
	}
	if dry {
		return nil
	}
	for some := range slices.Chunk(keys, store.MaxOperations) {
		if _, err := e.commit(store.Change{Delete: some, Who: who, Why: "revoked a share link"}); err != nil {
			return err
		}
		for _, key := range some {
			e.forgetLink(key)
		}
	}
	return nil
}

// visitKeys returns the keys of the visits of a link.
func (e *Engine) visitKeys(id string) (keys []string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	entries, _, err := e.o.Store.Snapshot(ctx, store.PrefixGateVisit)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	for _, entry := range entries {
		var l Link
		if json.Unmarshal(entry.Value, &l) == nil && l.ID == id {
			keys = append(keys, entry.Key)
		}
	}
	return keys, nil
}

// forgetLink ends a link or a visit in memory, by its key in the store.
func (e *Engine) forgetLink(key string) {
	text, isVisit := strings.CutPrefix(key, store.PrefixGateVisit)
	d, ok := parseDigest(strings.TrimPrefix(text, store.PrefixGateLink))
	if !ok {
		return
	}
	e.links.mu.Lock()
	v := e.links.visits[d]
	if isVisit {
		delete(e.links.visits, d)
	} else {
		v = nil
		delete(e.links.links, d)
	}
	e.links.mu.Unlock()
	if v != nil && !v.ended.Swap(true) && e.o.Cut != nil {
		e.o.Cut(v)
	}
}

// acceptLink reads an entry of the store: what this node wrote itself, or another.
func (e *Engine) acceptLink(entry *store.Entry) {
	text, isVisit := strings.CutPrefix(entry.Key, store.PrefixGateVisit)
	d, ok := parseDigest(strings.TrimPrefix(text, store.PrefixGateLink))
	var l Link
	if !ok || json.Unmarshal(entry.Value, &l) != nil {
		return
	}
	e.links.mu.Lock()
	defer e.links.mu.Unlock()
	switch {
	case !isVisit:
		e.links.links[d] = &l
	case e.links.visits[d] == nil && len(e.links.visits) < maxVisits:
		e.links.visits[d] = newVisit(l, d, e.present())
	}
}

// tidyLinks removes what has expired from memory. The store forgets it by itself.
func (e *Engine) tidyLinks(now time.Time) {
	for _, key := range e.linkKeys(func(expires time.Time) bool { return !now.Before(expires) }) {
		e.forgetLink(key)
	}
}

// linkKeys returns the keys of the links and visits with a time that a func chooses.
func (e *Engine) linkKeys(chosen func(expires time.Time) bool) (keys []string) {
	e.links.mu.RLock()
	defer e.links.mu.RUnlock()
	for d, l := range e.links.links {
		if chosen(l.Expires) {
			keys = append(keys, linkKey(d))
		}
	}
	for d, v := range e.links.visits {
		if chosen(v.link.Expires) {
			keys = append(keys, visitKey(d))
		}
	}
	return keys
}
