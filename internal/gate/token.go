package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/gate/people"
	"headgate/internal/proto/uri"
	"headgate/internal/store"
)

// TokenPrefix is what the text of every token starts with, so that programs that search for
// leaked secrets find them.
const TokenPrefix = "hgt_"

// TokenHeader is the field for tokens of applications that use Authorization themselves.
const TokenHeader = "X-Headgate-Token"

// Token lets in an application that cannot show the sign-in page. A gate accepts it if its
// allow list has token:NAME, or the person that the token belongs to.
type Token struct {
	// Name is the name of the token, and Description is for people.
	Name, Description string
	// Person is the person that the token belongs to, nil without one; Issuer is the URL of
	// the person's provider.
	Person *Person
	Issuer string
	// Proxies are the proxies at which it counts, and Paths what the paths of requests must
	// be below; none is all.
	Proxies, Paths []string
	// Created is when it was made, and CreatedBy the operator who did it.
	Created   time.Time
	CreatedBy string
	// Expires is when it ends; the zero time is never.
	Expires time.Time

	key      digest
	user     string   // of the access log
	prefixes []string // Paths without a slash at the end

	seen     atomic.Int64 // when it was used last, by the clock of requests; 0 is never
	kept     atomic.Int64 // seen as the store has it
	dirty    atomic.Bool  // seen is to be written
	ended    atomic.Bool
	revision atomic.Uint64

	mu   sync.Mutex
	from netip.Addr // of the use that is to be written
}

// The limits of tokens.
const (
	maxTokens    = 10_000
	maxTokenList = 64 // proxies, and paths
)

// TokenDigest is what is kept of the text of a token.
type TokenDigest = digest

// ReadToken returns the digest of the text of a token. Found reports whether the text is
// meant as one, valid whether it can be one.
func ReadToken(text string) (d TokenDigest, found, valid bool) {
	rest, found := strings.CutPrefix(text, TokenPrefix)
	if !found || !IsSecret(rest) {
		return d, found, false
	}
	return digestOf(rest), true, true
}

// Ended reports whether the token was revoked, or has expired.
func (t *Token) Ended() bool { return t.ended.Load() }

// User returns the name in the access log for clients with the token.
func (t *Token) User() string { return t.user }

// Seen returns when the token was used last, the zero time for never, and the address of the
// use that was written last.
func (t *Token) Seen() (time.Time, netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.seen.Load()
	if at == 0 {
		return time.Time{}, t.from
	}
	return clock.At(at), t.from
}

// Covers reports whether the token counts at a proxy for a path in its one form.
func (t *Token) Covers(proxy, path string) bool {
	if len(t.Proxies) > 0 && !slices.Contains(t.Proxies, proxy) {
		return false
	}
	return len(t.prefixes) == 0 || Below(path, t.prefixes)
}

// Below reports whether a path is below one of some prefixes, which end without a slash, by
// whole segments. Paths that a server may read as another one are below none.
func Below(path string, prefixes []string) bool {
	if uri.SpellingOf(path) == uri.Loose {
		return false
	}
	for _, p := range prefixes {
		if strings.HasPrefix(path, p) && (len(path) == len(p) || path[len(p)] == '/') {
			return true
		}
	}
	return false
}

// tokens are all tokens. Requests look only at byKey.
type tokens struct {
	mu     sync.RWMutex
	byKey  map[digest]*Token
	byName map[string]*Token
}

func (t *tokens) init() { t.byKey, t.byName = map[digest]*Token{}, map[string]*Token{} }

// put adds a token, or replaces the one of its name.
func (t *tokens) put(k *Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.byName[k.Name]; was != nil {
		delete(t.byKey, was.key)
	}
	t.byName[k.Name], t.byKey[k.key] = k, k
}

// drop ends a token in memory and returns it, nil if there is none.
func (t *tokens) drop(name string) *Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.byName[name]
	if k != nil {
		k.ended.Store(true)
		delete(t.byName, name)
		delete(t.byKey, k.key)
	}
	return k
}

func (t *tokens) named(name string) *Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// all returns the tokens by name.
func (t *tokens) all() []*Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.SortedFunc(maps.Values(t.byName), func(a, b *Token) int { return strings.Compare(a.Name, b.Name) })
}

// Token returns the token with a digest if it counts, and notes that it is used.
func (e *Engine) Token(d TokenDigest, now int64, from netip.Addr) *Token {
	e.tokens.mu.RLock()
	t := e.tokens.byKey[d]
	e.tokens.mu.RUnlock()
	u := e.use.Load()
	if t == nil || t.ended.Load() || !t.Expires.IsZero() && !e.time().Before(t.Expires) || t.Person != nil && u.unknown(t.Person, t.Issuer) {
		return nil
	}
	if last := t.seen.Load(); last == 0 || now > last {
		t.seen.Store(now)
	}
	if (t.kept.Load() == 0 || now-t.kept.Load() > int64(u.idle)/writesOfIdle) && !t.dirty.Swap(true) {
		t.kept.Store(now)
		t.mu.Lock()
		t.from = from.Unmap()
		t.mu.Unlock()
	}
	return t
}

// unknown reports whether a person's provider is not in use as it was, or headgate does not
// let the person in any more.
func (u *inUse) unknown(p *Person, issuer string) bool {
	if p.Provider == people.Provider {
		if !u.config.Local || u.people == nil {
			return true
		}
		l := u.people.Listed(p.ID[len(people.Provider)+1:])
		return l == nil || l.Disabled
	}
	at := u.provider(p.Provider)
	return at == nil || at.Issuer() != issuer
}

// keptToken is a token as the store has it.
type keptToken struct {
	Digest      string     `json:"digest"`
	Description string     `json:"description,omitempty"`
	Person      *Person    `json:"person,omitempty"`
	Issuer      string     `json:"issuer,omitempty"`
	Proxies     []string   `json:"proxies,omitempty"`
	Paths       []string   `json:"paths,omitempty"`
	Created     time.Time  `json:"created"`
	CreatedBy   string     `json:"created_by,omitempty"`
	Expires     time.Time  `json:"expires,omitzero"`
	Seen        time.Time  `json:"seen,omitzero"`
	From        netip.Addr `json:"from,omitzero"`
}

// ready computes what follows from the exported fields.
func (t *Token) ready() *Token {
	t.user = "token:" + t.Name
	if t.Person != nil {
		t.user = t.Person.User
	}
	t.prefixes = nil
	for _, p := range t.Paths {
		t.prefixes = append(t.prefixes, strings.TrimSuffix(p, "/"))
	}
	return t
}

// entry returns the token as the store has it; now is the present time.
func (t *Token) entry(now time.Time) store.Entry {
	seen, from := t.Seen()
	if !seen.IsZero() {
		seen = timeOf(t.seen.Load(), now)
	}
	value, err := json.Marshal(keptToken{
		Digest: t.key.String(), Description: t.Description, Person: t.Person, Issuer: t.Issuer, Proxies: t.Proxies, Paths: t.Paths,
		Created: t.Created, CreatedBy: t.CreatedBy, Expires: t.Expires, Seen: seen.UTC(), From: from,
	})
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	e := store.Entry{Key: store.PrefixGateToken + t.Name, Value: value}
	if !t.Expires.IsZero() {
		e.TTL = max(store.TTL(now, t.Expires), time.Second)
	}
	return e
}

// Tokens returns the tokens by name.
func (e *Engine) Tokens() []*Token { return e.tokens.all() }

// TokenNamed returns the token with a name, nil if there is none.
func (e *Engine) TokenNamed(name string) *Token { return e.tokens.named(name) }

// forgetToken ends a token in memory, and aborts what is under way.
func (e *Engine) forgetToken(name string) {
	if t := e.tokens.drop(name); t != nil && e.o.Cut != nil {
		e.o.Cut(t)
	}
}

// acceptToken reads an entry of the store: what this node wrote itself, or another.
func (e *Engine) acceptToken(entry *store.Entry) {
	name := strings.TrimPrefix(entry.Key, store.PrefixGateToken)
	var k keptToken
	d, ok := digest{}, false
	if err := json.Unmarshal(entry.Value, &k); err == nil {
		d, ok = parseDigest(k.Digest)
	}
	if !ok {
		e.o.Log.Error("a token cannot be read", "token", name)
		return
	}
	seen := int64(0)
	if !k.Seen.IsZero() {
		seen = cmp.Or(e.present().momentOf(k.Seen), -1) // 0 is never
	}
	known := e.tokens.named(name)
	switch {
	case known == nil:
	case known.revision.Load() > uint64(entry.Revision):
		return // it has been replaced since
	case known.key == d && samePerson(known.Person, k.Person):
		known.revision.Store(uint64(entry.Revision))
		if last := known.seen.Load(); seen != 0 && (last == 0 || seen > last) {
			known.seen.Store(seen) // another node has served it
			known.kept.Store(seen)
			known.mu.Lock()
			known.from = k.From
			known.mu.Unlock()
		}
		return
	}
	t := &Token{
		Name: name, Description: k.Description, Person: k.Person, Issuer: k.Issuer, Proxies: k.Proxies, Paths: k.Paths,
		Created: k.Created, CreatedBy: k.CreatedBy, Expires: k.Expires, key: d, from: k.From,
	}
	if t.Person != nil {
		t.Person = t.Person.ready()
	}
	t.ready()
	t.seen.Store(seen)
	t.kept.Store(seen)
	t.revision.Store(uint64(entry.Revision))
	if known != nil {
		e.forgetToken(name) // it was replaced: what ran with the one before ends
	}
	e.tokens.put(t)
}

// samePerson reports whether two tokens act for the same person with the same groups.
func samePerson(a, b *Person) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.User == b.User && a.Email == b.Email && a.Name == b.Name && slices.Equal(a.Groups, b.Groups)
}

// updateTokens gives the tokens of a person what is known about the person now, so that a
// person who has left a group does not keep it in a token.
func (e *Engine) updateTokens(p *Person, issuer string) {
	for _, t := range e.tokens.all() {
		if t.Person == nil || t.Person.ID != p.ID || samePerson(t.Person, p) && t.Issuer == issuer {
			continue
		}
		next := t.of(p, issuer)
		entry := next.entry(e.time())
		revision, err := e.commit(store.Change{If: []store.Condition{{Key: entry.Key, Revision: store.Revision(t.revision.Load())}}, Put: []store.Entry{entry}, Who: "headgate", Why: "the person of a token has changed"})
		if errors.Is(err, ErrExpired) {
			continue // another node has done it, which is followed
		} else if err != nil {
			e.o.Log.Warn("a token keeps what was known of its person", "token", t.Name, "error", err)
			continue
		}
		next.revision.Store(uint64(revision))
		e.forgetToken(t.Name)
		e.tokens.put(next)
	}
}

// of returns a token with the same text for what is known of its person now.
func (t *Token) of(p *Person, issuer string) *Token {
	next := &Token{
		Name: t.Name, Description: t.Description, Person: p, Issuer: issuer, Proxies: t.Proxies, Paths: t.Paths,
		Created: t.Created, CreatedBy: t.CreatedBy, Expires: t.Expires, key: t.key,
	}
	_, next.from = t.Seen()
	next.seen.Store(t.seen.Load())
	next.kept.Store(t.kept.Load())
	next.revision.Store(t.revision.Load())
	return next.ready()
}

// localTokens ends what runs with the tokens of a person kept by headgate who may not enter
// any more. The tokens of one who was removed are revoked: another may get the name.
func (e *Engine) localTokens(id string, removed bool) {
	for _, t := range e.tokens.all() {
		switch {
		case t.Person == nil || t.Person.ID != id:
		case removed:
			if err := e.RevokeToken(t.Name, "headgate", false); err != nil && !errors.Is(err, ErrNotFound) {
				e.o.Log.Warn("a token of a removed person could not be revoked", "token", t.Name, "error", err)
			}
			e.forgetToken(t.Name)
		default:
			e.forgetToken(t.Name)
			e.tokens.put(t.of(t.Person, t.Issuer)) // it counts again when the person may enter
		}
	}
}

// tidyTokens ends tokens in memory that have expired. The store forgets them by itself.
func (e *Engine) tidyTokens(now time.Time) {
	for _, t := range e.tokens.all() {
		if !t.Expires.IsZero() && !now.Before(t.Expires) {
			e.forgetToken(t.Name)
		}
	}
}
