package cache

import (
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// verdict is what the rules make of a response: whether it is stored, and for how
// long it is fresh.
type verdict struct {
	stored bool
	// why is why it is not, in a word or two for Cache-Status.
	why      string
	rules    directives
	targeted bool
	explicit bool // the response has an explicit lifetime
	guessed  bool
	part     bool // of it may be stored
	cookies  bool // it sets some, which are not stored
	// seconds
	life, age, while, onError int64
	date, modified            int64
}

// Why a response is not stored: the first three say that it may be for one client only.
const (
	whyAuthorization = "authorization"
	whyPersonal      = "signed-in"
	whyNotKeyed      = "not-keyed"
	whyTooLarge      = "too-large"
)

// forOne reports whether an answer is not stored for what is special in the request:
// then it says nothing of what others get.
func forOne(why string) bool {
	return why == whyAuthorization || why == whyPersonal || why == whyNotKeyed
}

// storable applies RFC 9111, section 3 and 4.2, to a response that arrived at the
// given Unix time after delay.
func (c *Cache) storable(ex *exchange.Exchange, status int, fields *header.List, at time.Time, delay time.Duration, p part) (v verdict) {
	v.part = p.total > 0
	v.targeted = v.rules.targeted(fields)
	if !v.targeted {
		v.rules.parse(fields, header.CacheControl)
	}
	_, older := fields.Lookup("Set-Cookie2") // dropped when stored, as the other is
	v.cookies = older || fields.Has(header.SetCookie)
	v.dates(fields, at, delay)
	v.explicit = v.freshness(fields, at.Unix())
	if v.explicit && v.life == 0 {
		v.rules.has |= expired
	}
	if v.part && (!v.explicit || v.life == 0) {
		v.why = "range" // a part is not validated
		return v
	}
	if v.why = c.forbidden(&v, ex, status, fields); v.why != "" {
		return v
	}
	if !v.explicit && !c.guess(&v, ex, status, fields) {
		v.why = "no-lifetime"
		return v
	}
	v.stale(c)
	if (v.life == 0 || v.rules.has&noCache != 0) && v.onError == 0 && v.while == 0 && v.modified == noDate && !fields.Has(header.ETag) {
		v.why = "no-validator" // it could never be used
		return v
	}
	v.stored = true
	return v
}

// dates works out how old the response is (RFC 9111, section 4.2.3).
func (v *verdict) dates(fields *header.List, at time.Time, delay time.Duration) {
	now := at.Unix()
	v.date, v.modified = now, noDate
	if date, ok := parseDate(fields.Get(header.Date)); ok {
		v.date = date
	}
	if modified, ok := parseDate(fields.Get(header.LastModified)); ok {
		v.modified = modified
	}
	// An Age that is a list counts by its first member, one that is no number
	// not at all (RFC 9111, section 5.1).
	age, _ := seconds(header.TrimOWS(firstOf(fields.Get(header.Age))))
	v.age = min(longest, max(0, now-v.date, age+int64(delay/time.Second)))
}

func firstOf(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == ',' {
			return s[:i]
		}
	}
	return s
}

// freshness works out for how long the response is fresh. It returns false if the
// response does not say (RFC 9111, section 4.2.1). An Expires that has passed at now, in
// Unix seconds, is a lifetime of zero, whatever Date says.
func (v *verdict) freshness(fields *header.List, now int64) bool {
	d := &v.rules
	switch {
	case d.has&sMaxage != 0:
		v.life = d.sMaxage
	case d.has&maxAge != 0:
		v.life = d.maxAge
	case !v.targeted && fields.Has(header.Expires):
		// What is no date lies in the past (RFC 9111, section 5.3).
		if expires, ok := parseDate(fields.Get(header.Expires)); ok && expires > now {
			v.life = min(longest, max(0, expires-v.date))
		}
	default:
		return d.has&noCache != 0
	}
	return true
}

// forbidden returns why a response must not be stored (RFC 9111, section 3).
func (c *Cache) forbidden(v *verdict, ex *exchange.Exchange, status int, fields *header.List) string {
	d := &v.rules
	open := d.has & (public | sMaxage | mustRevalidate)
	switch {
	case status < 200 || status == 206 && !v.part || status == 304:
		return "status"
	case d.has&mustUnderstand != 0 && !http1.UnderstoodByCache(status):
		return "must-understand"
	case d.has&noStore != 0 && d.has&mustUnderstand == 0:
		return "no-store"
	case d.has&private != 0:
		return "private"
	case strings.HasPrefix(fields.Get(header.ContentType), "text/event-stream"):
		return "event-stream" // it never ends
	case ex.Request.Header.Has(header.Authorization) && open == 0:
		return whyAuthorization // RFC 9111, section 3.5
	case ex.Personal && d.has&public == 0:
		return whyPersonal
	case v.cookies && !v.targeted && d.has&(public|sMaxage) == 0:
		// The RFC allows it and nginx and Varnish do not: a cookie mostly goes
		// with a page for one person. Who means it says public.
		return "set-cookie"
	}
	return ""
}

// maxHeuristic is how long a response is fresh at most that says nothing of it, in
// seconds, where its age is what its life is guessed by.
const maxHeuristic = 24 * 60 * 60

// guess assigns the default lifetime to a response without one, if it is of a
// suitable kind (RFC 9111, section 4.2.2). For a request with cookies the
// response may be for one person: only responses with Last-Modified, which files
// have and pages have not, are shared then.
func (c *Cache) guess(v *verdict, ex *exchange.Exchange, status int, fields *header.List) bool {
	d := &v.rules
	if c.heuristic > 0 && v.modified != noDate && v.modified < v.date && ex.Request.Query == "" &&
		(http1.CacheableByDefault(status) || d.has&public != 0) && (!v.cookies || d.has&public != 0) {
		v.life = min(max(c.heuristic.Of(v.date-v.modified), 1), maxHeuristic)
		return true
	}
	if c.defaultTTL <= 0 {
		return d.has&public != 0 && (v.modified != noDate || fields.Has(header.ETag))
	}
	v.guessed = v.modified == noDate && d.has&public == 0
	v.life = c.defaultTTL
	switch {
	case !http1.CacheableByDefault(status) && d.has&public == 0:
		return false
	case v.cookies && d.has&public == 0:
		return false
	case v.guessed && ex.Request.Header.Has(header.Cookie):
		return false
	}
	return true
}

// stale determines how long the response may be served after its lifetime (RFC 5861;
// RFC 9111, section 4.2.4). A response that must be revalidated overrides the
// settings; so does s-maxage, unless the response itself sets a limit for staleness.
// A response that was declared expired was never fresh for other clients: no setting
// allows it for them.
func (v *verdict) stale(c *Cache) {
	d := &v.rules
	if d.has&(mustRevalidate|proxyRevalidate|noCache) != 0 {
		return
	}
	if d.has&(sMaxage|expired) == 0 {
		v.while, v.onError = c.whileRevalidate, c.ifError
	}
	if d.has&whileRevalidate != 0 {
		v.while = d.whileRevalidate
	}
	if d.has&ifError != 0 {
		v.onError = d.ifError
	}
}

// use is what an entry is good for.
type use uint8

const (
	none       use = iota // there is none
	validate              // after a server said that it is
	byClient              // stale, but the client accepts it
	refreshing            // stale, while it is fetched anew
	fresh
)

// usability returns what an entry may be used for at this moment (RFC 9111, section 4).
func (h *hit) usability(e *entry) use {
	if e == nil || h.notFor(e) {
		return none
	}
	d, rules := &h.cc, e.rules
	age := e.ageAt(h.now)
	left := e.life - age
	if e.purged.Load() {
		left = min(left, -1)
	}
	switch {
	case rules&noCache != 0, d.has&noCache != 0 && !h.came(e):
		return validate
	case d.has&maxAge != 0 && age > d.maxAge*second && !(d.has&maxStale != 0 && left <= 0):
		return validate
	case d.has&minFresh != 0 && left < d.minFresh*second:
		return validate
	case left > 0:
		return fresh
	case d.has&maxStale != 0 && rules&(mustRevalidate|proxyRevalidate|sMaxage|expired) == 0 && !e.purged.Load() &&
		(d.has&anyStale != 0 || -left <= d.maxStale*second):
		return byClient
	case -left <= e.while && e.while > 0 && d.has&maxAge == 0:
		return refreshing
	}
	return validate
}

// came reports whether the request waited for this entry: it was made after the
// request, which is all that no-cache of a client can want.
func (h *hit) came(e *entry) bool { return h.collapsed && e.stored >= h.now }

// notFor reports whether an entry is no answer to a request with cookies, since
// nothing says that it is for everyone.
func (h *hit) notFor(e *entry) bool { return e.guessed && h.ex.Request.Header.Has(header.Cookie) }

const second = int64(time.Second)

// ageAt returns the age of the entry at a time of the store, in nanoseconds. A
// clock that goes back counts as stopped.
func (e *entry) ageAt(now int64) int64 { return e.age + max(0, now-e.stored) }

// onErrorAt reports whether the entry may replace a failure of the servers.
func (e *entry) onErrorAt(now int64) bool {
	return e.onError > 0 && e.ageAt(now)-e.life <= e.onError && e.rules&noCache == 0
}
