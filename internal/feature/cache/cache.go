// Package cache is a shared HTTP cache in memory: a source in front of another
// one, which answers with what it has stored as long as RFC 9111 lets it.
//
// cache.go is the main path: what is stored for a request, whether it may be used, and which
// request goes to the servers if not. key.go and vary.go distinguish requests; directive.go,
// targeted.go and date.go parse fields, and judge.go applies the rules to them. fetch.go sends
// requests to the servers, arrive.go handles their responses, freshen.go those about an entry;
// entry.go and body.go are what is stored, pump.go fills bodies, hit.go, serve.go, condition.go and
// part.go make responses of them. combine.go combines parts, post.go stores responses to POST for
// GET, language.go normalizes Accept-Language. store.go is the index, arena.go the memory, queue.go
// the eviction order. purge.go and invalidate.go remove entries.
package cache

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
)

// Cache is a source that stores what another one answers. It is compiled with a
// plan; what it stores is kept over plans.
type Cache struct {
	inner   exchange.Source
	store   *store
	plan    uint64
	limit   int64
	ignored ignored
	// seconds, and bytes
	defaultTTL, whileRevalidate, ifError int64
	heuristic                            unit.Percent // of a response's age
	languages                            []string
	maxEntry                             int64
	// partition returns what keeps the responses for some requests from others; nil for one
	// part.
	partition func(*exchange.Exchange) uint32
}

// Store is the memory of a cache: a proxy's, for all routes that have none of
// their own.
type Store struct {
	*store
	plan    uint64
	ignored ignored
}

// Open returns the store of the settings of env.Scope: a proxy, or a route of one.
// It is kept over plans as long as the owner has a cache. Settings that differ
// hold from the first request that is served by them.
func Open(c *Config, env exchange.Env) Store {
	s := exchange.Keep(env, "cache of "+env.Scope, nil, func() *store { return newStore(env.Scope, c.MemoryLimit.Int64(), env.Clock, env.Log) })
	return Store{s, s.plans.Add(1), newIgnored(c.IgnoreQuery)}
}

// Memory returns how much memory is held and may be, in bytes, how many responses
// are stored, and how many were given up because memory was full.
func (s Store) Memory() (held, limit, entries int64, evicted uint64) {
	return s.bytes(), s.limit.Load(), s.entries.Load(), s.evicted.Load()
}

// New returns a source that answers with stored responses, and uses inner for
// the rest. Valid settings cause no error.
func New(c *Config, s Store, inner exchange.Source) *Cache {
	return &Cache{
		inner: inner, store: s.store, plan: s.plan, limit: c.MemoryLimit.Int64(), ignored: s.ignored,
		heuristic: c.Heuristic, defaultTTL: toSeconds(c.DefaultTTL.D()), whileRevalidate: toSeconds(c.StaleWhileRevalidate.D()),
		languages: c.Languages,
		ifError:   toSeconds(c.StaleIfError.D()), maxEntry: min(c.MaxEntry.Int64(), c.MemoryLimit.Int64()),
	}
}

// Partition divides what is stored: a request gets only responses to requests with the same
// number. It is called before the first request.
func (c *Cache) Partition(of func(*exchange.Exchange) uint32) { c.partition = of }

func toSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Filter returns the filter that invalidates what unsafe requests have changed.
// It looks at responses as clients get them, so it is in front of all filters
// that change them.
func (c *Cache) Filter() exchange.Filter {
	return exchange.Filter{Name: "cache_invalidation", Response: c.invalidate}
}

// Describe returns "cache → " and what is behind it.
func (c *Cache) Describe() string { return "cache → " + c.inner.Describe() }

// The times of a cache.
const (
	// passFor is how long the answers to a key are not waited for by others
	// after one could not be stored, failedFor after a server failed.
	passFor   = 60 * time.Second
	failedFor = time.Second
	// patience is how long a request waits for the head of another's response
	// before it sends its own.
	patience = 5 * time.Second
	// goneEvery is how often it looks whether its client still waits.
	goneEvery = time.Second / 2
)

// Respond answers with a stored response if it may, and sends the request to the
// servers otherwise.
func (c *Cache) Respond(ex *exchange.Exchange) *exchange.Answer {
	if c.plan > c.store.serving.Load() {
		c.store.resize(c.plan, c.limit)
	}
	c.chooseLanguage(ex)
	if status := passes(ex); status != "" {
		if ex.Request.Method == "POST" {
			return c.post(ex)
		}
		return c.pass(ex, status)
	}
	h := c.newHit(ex)
	if h.cc.has&noStore != 0 {
		return c.pass(ex, statusRequest)
	}
	for {
		step, e, fl := c.lookUp(h)
		switch step {
		case serveIt:
			if h.open(e) {
				return h.serve(e)
			}
		case leadIt:
			return c.lead(h, e, fl)
		case goAlone:
			return c.lead(h, e, nil)
		case refuseIt:
			return notCached
		case awaitIt:
			if answer, answered := c.await(h, fl); answered {
				return answer
			}
		}
		h.rounds++
	}
}

// hits is where a cache keeps what it needs to serve a stored response, so that a hit
// allocates nothing.
var hits = exchange.NewSlot[hit](false)

// newHit readies what the cache needs for a request. It is the same from one
// exchange to the next.
func (c *Cache) newHit(ex *exchange.Exchange) *hit {
	h := hits.Reuse(ex)
	h.Close()
	*h = hit{key: h.key, scratch: h.scratch, ex: ex, store: c.store}
	h.now = c.store.now()
	if ex.Request.Header.Has(header.CacheControl) {
		h.cc.parse(&ex.Request.Header, header.CacheControl)
	}
	c.keyOf(h, ex)
	return h
}

// marked is the mark of a request whose responses are not for the cache. They may
// be for one client only: those have marks of their own.
func (h *hit) marked() uint64 {
	rq, m := &h.ex.Request.Header, h.hash
	if rq.Has(header.Cookie) {
		m++
	}
	if h.ex.Personal || rq.Has(header.Authorization) {
		m += 2
	}
	return m
}

// step is what comes next for a request.
type step uint8

const (
	serveIt  step = iota // with the entry
	leadIt               // fetch, while others wait
	goAlone              // fetch, without waiters
	awaitIt              // wait for another's fetch
	refuseIt             // nothing is stored, and nothing else is allowed
)

// maxRounds is how often a request looks again before it goes alone.
const maxRounds = 3

// lookUp finds what is stored for a request and decides. An entry that it returns
// is held.
func (c *Cache) lookUp(h *hit) (step, *entry, *flight) {
	sh := c.store.shard(h.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, near := sh.findLocked(h)
	h.near = near
	u := h.usability(e)
	if u >= byClient && h.rounds < maxRounds {
		e.hold()
		e.use()
		e.hits++
		h.use = u
		if u == refreshing && sh.mu.flights[h.hash] == nil {
			c.refreshLocked(sh, h, e)
		}
		return serveIt, e, nil
	}
	h.use = none
	if h.cc.has&onlyIfCached != 0 {
		return refuseIt, nil, nil
	}
	if e != nil && h.notFor(e) {
		return goAlone, nil, nil
	}
	if e != nil {
		e.hold()
		h.use = validate
	}
	fl := sh.mu.flights[h.hash]
	switch {
	case h.rounds > 0, sh.markedLocked(h.marked(), h.now), h.ex.Request.Method == "HEAD":
		return goAlone, e, nil
	case fl == nil && e == nil && h.ex.Request.Header.Has(header.Range):
		h.partly = wantsPart(&h.ex.Request)
		return goAlone, nil, nil
	case fl != nil && string(fl.key) != string(h.key):
		return goAlone, e, nil // two keys with one hash
	case fl != nil:
		if e != nil {
			h.spare = e
		}
		fl.waiting.Add(1)
		return awaitIt, nil, fl
	}
	return leadIt, e, sh.takeOffLocked(h)
}

// takeOffLocked makes a fetch known for others to wait for.
func (sh *shard) takeOffLocked(h *hit) *flight {
	fl := &flight{key: append([]byte(nil), h.key...), landed: make(chan struct{})}
	if sh.mu.flights == nil {
		sh.mu.flights = map[uint64]*flight{}
	}
	sh.mu.flights[h.hash] = fl
	return fl
}

// land lets those go who wait for a fetch.
func (s *store) land(h *hit, fl *flight) {
	if fl == nil {
		return
	}
	sh := s.shard(h.hash)
	sh.mu.Lock()
	if sh.mu.flights[h.hash] == fl {
		delete(sh.mu.flights, h.hash)
	}
	sh.mu.Unlock()
	close(fl.landed)
}

// await waits until a fetch has a head. answered is false when it is worth to look
// again.
func (c *Cache) await(h *hit, fl *flight) (answer *exchange.Answer, answered bool) {
	defer fl.waiting.Add(-1)
	stale := h.spare
	h.spare = nil
	if stale != nil {
		defer stale.release()
	}
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	defer func() { h.ex.Times.Passed = exchange.Now() }()
	for waited := time.Duration(0); waited < patience; waited += goneEvery {
		select {
		case <-fl.landed:
			if !h.collapsed {
				h.wanted, h.wantedNear = h.use, h.near
			}
			h.collapsed = true
			if fl.failed && stale != nil && stale.onErrorAt(h.now) {
				stale.hold()
				if h.use = refreshing; h.open(stale) {
					return h.serve(stale), true
				}
			}
			return fl.failure, fl.failure != nil
		case <-tick.C:
			if h.ex.Front.Gone() {
				return exchange.Fail(exchange.ClientClosed, "the client left before the answer was there"), true
			}
		}
	}
	return nil, false
}

// pass sends the request to the servers as if there were no cache.
func (c *Cache) pass(ex *exchange.Exchange, status string) *exchange.Answer {
	ex.Cache.Use = exchange.CachePass
	answer := c.inner.Respond(ex)
	if answer != nil {
		return answer
	}
	if ex.Response.Tunnel == nil {
		ex.Response.Header.Add(header.CacheStatus, status)
	}
	return nil
}

// notCached answers only-if-cached when nothing is stored (RFC 9111, section
// 5.2.1.7).
var notCached = exchange.Fail(exchange.NotCached, "the request has only-if-cached")

// refreshLocked fetches an entry anew in the background (RFC 5861, section 3).
func (c *Cache) refreshLocked(sh *shard, h *hit, e *entry) {
	own := &hit{store: c.store, ex: &exchange.Exchange{}, hash: h.hash, url: h.url, now: h.now, use: validate}
	own.key = append(own.key, h.key...)
	cloneRequest(own.ex, h.ex, &exchange.Conn{}, quiet{c.store})
	fl := sh.takeOffLocked(own)
	e.hold()
	if !c.store.inBackground(func() { c.refresh(own, e, fl) }) {
		delete(sh.mu.flights, h.hash)
		e.release()
	}
}

// refresh is a fetch that no client waits for.
func (c *Cache) refresh(h *hit, e *entry, fl *flight) {
	rs := &h.ex.Response
	defer func() { // also after a panic
		if rs.Body != nil {
			rs.Body.Close()
		}
	}()
	if answer := c.lead(h, e, fl); answer != nil || rs.Body == nil {
		return
	}
	if b := h.body; b != nil && h.reading {
		// no reader needs the rest
		b.leaveTo(h, func(finish func()) bool { finish(); return true })
	}
}
