package gate

import (
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// Session is a sign-in of a person in one browser. There may be 100,000, so that it holds texts
// that others have too in memory once, and times in few bytes.
type Session struct {
	cookie // of the sign-in host; the next ones are those of applications' hosts

	// constant

	issuer           *string  // the provider's URL when the person signed in
	agent            string   // of the browser that signed in, as is address
	address          [16]byte // IPv4 is mapped to IPv6; all zero if it is not known
	created, expires uint32   // seconds of Unix time
	until            int64    // the same as expires, by the clock of requests

	person   atomic.Pointer[Person] // who signed in; another one of the same ID when what is known of the person changes
	seen     atomic.Int64           // when it was used last, by the clock of requests
	kept     atomic.Int64           // seen as the store has it
	revision atomic.Uint64          // of the entry in the store

	confirmed  atomic.Int64 // when the provider confirmed it last, by the clock of requests
	refreshFor atomic.Int32 // how long the refresh token can be used, in seconds; 0 is not known

	dirty     atomic.Bool // seen is to be written
	ended     atomic.Bool
	foreign   atomic.Bool // the provider in use is not the one that it came through
	refreshes atomic.Bool // it is checked again: the store has a refresh token

	mu sync.Mutex // guards next of all cookies; a session has few
}

// cookie is what is kept of the secret of a cookie: of a session at the sign-in host, or at an
// application's host.
type cookie struct {
	key     digest
	session *Session // which it belongs to
	next    *cookie  // of the same session
	host    string   // of the application, "" for the sign-in host
}

// newSession returns a session that is not in a table yet.
func newSession(key digest, p *Person, issuer string, address netip.Addr, agent string, created, expires time.Time) *Session {
	s := &Session{issuer: &issuer, agent: agent, created: uint32(created.Unix()), expires: uint32(expires.Unix())}
	if address.IsValid() {
		s.address = address.As16()
	}
	s.cookie = cookie{key: key, session: s}
	s.setPerson(p)
	return s
}

// Issuer returns the provider's URL when the person signed in.
func (s *Session) Issuer() string { return *s.issuer }

// Address returns the address of the browser that signed in, "" if it is not known.
func (s *Session) Address() string {
	if s.address == [16]byte{} {
		return ""
	}
	return netip.AddrFrom16(s.address).Unmap().String()
}

// Agent returns what the browser that signed in reported about itself.
func (s *Session) Agent() string { return s.agent }

// Created returns when the person signed in, to the second.
func (s *Session) Created() time.Time { return time.Unix(int64(s.created), 0).UTC() }

// Expires returns when the session ends at the latest, to the second.
func (s *Session) Expires() time.Time { return time.Unix(int64(s.expires), 0).UTC() }

// Person returns who signed in, with the groups and the address that the person has now.
func (s *Session) Person() *Person { return s.person.Load() }

// setPerson replaces what is known of the person of the session, who stays the same.
func (s *Session) setPerson(p *Person) { s.person.Store(p) }

// ID returns what people and the API call the session.
func (s *Session) ID() string { return s.key.String()[:16] }

// Ended reports whether the session was ended. One whose time is over has not been ended
// yet.
func (s *Session) Ended() bool { return s.ended.Load() }

// Seen returns when the session was used last, by the clock of this machine.
func (s *Session) Seen() time.Time { return clock.At(s.seen.Load()) }

// Live reports whether the session counts at a moment of the clock of requests.
func (s *Session) live(now int64, idle time.Duration) bool {
	return !s.ended.Load() && !s.foreign.Load() && now < s.until && now-s.seen.Load() <= int64(idle)
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

// HasHost reports whether a session has been used at an application's host.
func (s *Session) HasHost(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := s.next; c != nil; c = c.next {
		if c.host == host {
			return true
		}
	}
	return false
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

func agentOf(text string) string {
	b := []byte(text[:min(len(text), maxAgent)])
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// time returns the time that all nodes agree on. Every time that is written is of it.
func (e *Engine) time() time.Time { return store.Time(e.o.Store) }

// present is the present moment of the clock of requests, and the time, read in this order: a
// moment that is written and read again is never later than it was.
type present struct {
	moment int64
	time   time.Time
}

func (e *Engine) present() present {
	moment := clock.Now()
	return present{moment, e.time()}
}

// momentOf returns a time as a moment of the clock of requests.
func (p present) momentOf(t time.Time) int64 { return p.moment - int64(p.time.Sub(t)) }

// timeOf returns a moment of the clock of requests as a time; now is the present time.
func timeOf(moment int64, now time.Time) time.Time {
	return now.Add(time.Duration(moment - clock.Now()))
}

// clocks sets what the clock of requests has to know.
func (s *Session) clocks(seen, confirmed time.Time, p present) {
	s.until = p.momentOf(s.Expires())
	at := p.momentOf(seen)
	s.seen.Store(at)
	s.kept.Store(at)
	s.confirmed.Store(p.momentOf(confirmed))
}

// entry returns the session as the store has it. The store forgets it when it has not been
// used for the idle time, with what may not have been written. Now is the present time.
func (s *Session) entry(idle time.Duration, now time.Time) store.Entry {
	seen := timeOf(s.seen.Load(), now)
	value, err := json.Marshal(keptSession{Person: s.Person(), Issuer: s.Issuer(), Address: s.Address(), Agent: s.Agent(), Created: s.Created(), Seen: seen.UTC(), Expires: s.Expires(),
		Confirmed: timeOf(s.confirmed.Load(), now).UTC(), Refreshes: s.refreshes.Load(), RefreshFor: s.refreshFor.Load()})
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	ttl := min(store.TTL(now, s.Expires()), store.TTL(now, seen.Add(idle+idle/writesOfIdle+time.Minute)))
	return store.Entry{Key: keyOf(s.key), Value: value, TTL: max(ttl, time.Second)}
}

// Hosts returns the hosts of applications that a session has been used at.
func (s *Session) Hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for c := s.next; c != nil; c = c.next {
		out = append(out, c.host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Host returns the session that a cookie of an application's host belongs to, nil if it
// belongs to none that counts. Now is the moment of the request.
func (e *Engine) Host(cookie, host string, now int64) *Session {
	if len(cookie) != SecretLength {
		return nil
	}
	h := e.sessions.find(digestOf(cookie))
	if h == nil || h.host == "" || h.host != host {
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
	if h == nil || h.host != "" {
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
