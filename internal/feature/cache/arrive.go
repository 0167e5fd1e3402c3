package cache

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// lead sends the request to the servers, stores the response if allowed, and
// answers. e is a stored entry that may still be valid, held for the request, or
// nil. Others wait for fl, if it is not nil, until the head has arrived.
func (c *Cache) lead(h *hit, e *entry, fl *flight) *exchange.Answer {
	landed := false
	land := func() {
		if !landed {
			landed = true
			c.store.land(h, fl)
		}
	}
	defer land() // also after a panic
	if e != nil {
		defer e.release()
	}
	h.ex.Cache.Use = exchange.CacheMiss
	if h.ex.Request.Method == "HEAD" {
		return c.leadHead(h, e)
	}
	if e == nil && fl == nil {
		if h.partly {
			return c.fetchPart(h)
		}
		return c.alone(h)
	}
	answer, repeat := c.try(h, e, e, fl, land)
	if repeat {
		answer, _ = c.try(h, e, nil, fl, land)
	}
	return answer
}

// try fetches once. asked is e if the request validates e. repeat means that the response
// was about something else, and that the whole has to be fetched.
func (c *Cache) try(h *hit, e, asked *entry, fl *flight, land func()) (answer *exchange.Answer, repeat bool) {
	f := c.newFetch(h.ex, fl)
	began := c.store.now()
	if answer = f.send(c.inner, asked); answer != nil {
		f.close()
		return c.failed(h, e, fl, answer), false
	}
	rs := &f.ex.Response
	switch {
	case rs.Status == statusNotModified && asked != nil:
		fresher := c.freshen(h, e, &f.ex.Response.Header, began)
		f.close()
		if fresher == nil {
			return nil, true
		}
		c.publish(h, e, fresher, f.begun)
		if !h.open(fresher) {
			return nil, true // it was still coming, and has ended early meanwhile
		}
		land()
		h.ex.Cache.Use = exchange.CacheRevalidated
		h.forwarded, h.revalidated = true, true
		return h.serve(fresher), false
	case rs.Status == statusNotModified:
		f.close()
		return c.failed(h, e, fl, notAsked), false
	case e != nil && http1.ServerFailed(rs.Status) && e.onErrorAt(c.store.now()) && h.standIn(e, rs.Status):
		if fl != nil {
			fl.failed = true
		}
		f.close()
		return nil, false
	}
	stored, why := c.keep(h, f, began, part{})
	if stored == nil {
		c.hand(h, e, f, why)
		return nil, false
	}
	land()
	h.serveBegun(stored)
	return nil, false
}

// serveBegun answers with an entry whose body has just begun.
func (h *hit) serveBegun(e *entry) {
	h.ex.Response.Body = h // to be closed, also should reading on panic
	e.body.readAhead()
	h.serveWith(e, h.extra)
}

const statusNotModified = 304

// notAsked answers when a server sends 304 to a request without a condition: there is
// nothing that the client could apply it to.
var notAsked = exchange.Fail(exchange.UpstreamInvalid, "the server sent 304 to a request without a condition")

// failed is what becomes of a request when no server answered.
func (c *Cache) failed(h *hit, e *entry, fl *flight, answer *exchange.Answer) *exchange.Answer {
	if fl != nil && answer.Reason != exchange.ClientClosed {
		fl.failed, fl.failure = true, answer
	}
	if e != nil && e.onErrorAt(c.store.now()) && answer.Reason != exchange.ClientClosed && h.standIn(e, 0) {
		return nil
	}
	return answer
}

// standIn answers with a stale entry because the servers failed (RFC 5861, section
// 4), with this status, or 0 if there was none. It returns false if the stored
// body has ended early.
func (h *hit) standIn(e *entry, status int) bool {
	e.hold()
	if !h.open(e) {
		return false
	}
	h.forwarded, h.use, h.forwardStatus = true, refreshing, status
	h.serve(e)
	return true
}

// hand passes a response on that is not stored.
func (c *Cache) hand(h *hit, e *entry, f *fetch, why string) {
	status := f.ex.Response.Status
	until := passFor
	if http1.ServerFailed(status) {
		until = failedFor
	} else if e != nil && !forOne(why) {
		// The server has said something newer, which must not be stored.
		c.store.unlink(e)
	}
	c.store.mark(h.marked(), h.now+int64(until))
	f.hand()
	rs := &h.ex.Response
	b := h.appendForward(h.ex.Text.Buffer())
	b = append(b, "; detail="...)
	b = append(b, why...)
	rs.Header.Add(header.CacheStatus, h.ex.Text.End(b))
}

// alone sends a request for one client, as if there were no cache: for a part of
// something that is not stored, since the whole might be far too large, or if a
// response could not be stored lately. If that has changed, the next request stores
// it.
func (c *Cache) alone(h *hit) *exchange.Answer {
	began := c.store.now()
	answer := c.inner.Respond(h.ex)
	rs := &h.ex.Response
	if answer != nil || rs.Tunnel != nil {
		return answer
	}
	now := c.store.now()
	v := c.storable(h.ex, rs.Status, &rs.Header, c.store.clock(), time.Duration(now-began), part{})
	b := h.appendForward(h.ex.Text.Buffer())
	switch {
	case h.ex.Request.Header.Has(header.Range):
		b = append(b, "; detail=range"...)
	case !v.stored:
		b = append(append(b, "; detail="...), v.why...)
	case rs.Length <= c.maxEntry && v.life > 0:
		c.store.unmark(h.marked())
	}
	rs.Header.Add(header.CacheStatus, h.ex.Text.End(b))
	return nil
}

// keep makes an entry of a response that may be stored, opens it for h, and lets
// others see it. It returns nil if it may not, and why.
func (c *Cache) keep(h *hit, f *fetch, began int64, p part) (e *entry, why string) {
	rs := &f.ex.Response
	wall, now := c.store.clock(), c.store.now()
	v, why := c.judgeResponse(h.ex, rs, wall, time.Duration(now-began), p)
	switch {
	case why != "":
		return nil, why
	case c.store.sweptSince(h.hash, f.begun):
		return nil, "invalidated"
	}
	length := rs.Length
	if rs.Status == statusNoContent {
		length = 0
	}
	e = h.newEntry(&v, rs, f.ex.Server, now)
	if e == nil {
		return nil, whyNotKeyed
	}
	e.received, e.part = wall.Unix(), p
	if rs.Makeshift {
		e.brief = true
		e.life, e.while, e.onError = min(e.life, e.age+briefLife), 0, 0
	}
	e.body = newBody(c.store, e.hash, length, c.maxEntry)
	e.body.mu.source = f
	e.body.adopt(e)
	// From here on the response may end at any time, and its head with it.
	h.extra = h.leave(f, &v)
	f.detach()
	h.forwarded, h.stored = true, true
	h.open(e)
	if v.life == 0 || v.rules.has&noCache != 0 {
		c.store.mark(h.marked(), h.now+int64(passFor))
	} else {
		c.store.unmark(h.marked())
	}
	c.publish(h, nil, e, f.begun)
	return e, ""
}

// judgeResponse returns why a response to ex, which arrived at the given time after delay, is not
// stored, "" if it is. Only what happens meanwhile, and its Vary, can prevent that then.
func (c *Cache) judgeResponse(ex *exchange.Exchange, rs *exchange.Response, at time.Time, delay time.Duration, p part) (v verdict, why string) {
	v = c.storable(ex, rs.Status, &rs.Header, at, delay, p)
	switch {
	case !v.stored:
		return v, v.why
	case rs.Tunnel != nil:
		return v, "status"
	case rs.Length > c.maxEntry:
		return v, whyTooLarge
	}
	return v, ""
}

const statusNoContent = 204

// briefLife is how long a body is kept that is not what the route would make of it when
// it has the memory for that.
const briefLife = 10 * second

// publish puts an entry into the index, in place of those that it replaces, unless it is
// late. old is the one with the same body, or nil; begun is the number of sweeps at the
// time of the request.
func (c *Cache) publish(h *hit, old, e *entry, begun uint64) {
	replaced, body := c.store.link(h, old, e, begun)
	if body == late || body == lost {
		c.store.queue.remove(e) // whatever becomes of its body
		return
	}
	unsettled := body == whole // otherwise the end of the body decides
	for _, x := range replaced {
		if unsettled && x == old {
			e.measure()
			c.store.queue.follow(e, x)
			x.release()
			unsettled = false
			continue
		}
		c.store.unqueue(x)
	}
	if unsettled {
		c.store.enqueue(e)
	}
}

// newEntry makes an entry without a body, of what a server answered. It is held
// once, for the caller. It returns nil if there is no memory, or the head is too
// large.
func (h *hit) newEntry(v *verdict, rs *exchange.Response, server string, now int64) *entry {
	names, variant, ok := h.readVary(nil, &rs.Header, &h.ex.Request.Header)
	if !ok {
		return nil
	}
	dated := rs.Header.Has(header.Date)
	size, ok := fieldsSize(rs.Header.All())
	if size += len(h.key) + len(names) + 64; !ok || size > h.store.arena.largest {
		return nil
	}
	x, ok := h.store.alloc(size, h.hash)
	if !ok {
		return nil
	}
	e := &entry{store: h.store, hash: h.hash, head: x, keyLen: len(h.key), variant: variant, status: rs.Status, server: server}
	b := append(append(x.mem[:0], h.key...), names...)
	for i := range rs.Header.All() {
		f := &rs.Header.All()[i]
		if !storedField(f, v) {
			continue
		}
		var at int
		b, at = appendField(b, f)
		switch value := view(b[at:]); f.ID {
		case header.ETag:
			e.etag = value
		case header.LastModified:
			e.lastMod = value
		default:
			e.tagged = e.tagged || isTag(f.ID)
		}
	}
	if !dated {
		// RFC 9110, section 6.6.1.
		b, _ = appendField(b, &header.Field{ID: header.Date, Name: "Date", Value: h.store.date()})
	}
	e.head.mem = b
	e.judged(v, now)
	e.refs.Store(1)
	h.store.entries.Add(1)
	return e
}

// judged notes what the rules made of the response.
func (e *entry) judged(v *verdict, now int64) {
	e.rules, e.guessed = v.rules.has, v.guessed
	e.stored, e.age, e.life = now, v.age*second, v.life*second
	e.while, e.onError = v.while*second, v.onError*second
	e.date, e.modified = v.date, v.modified
}

// storedField reports whether a field of a response is stored (RFC 9111, section
// 3.1). Cookies are not: they are for the client that got them.
func storedField(f *header.Field, v *verdict) bool {
	switch f.ID {
	case header.Age, header.SetCookie, header.ContentLength:
		return false
	case header.ContentRange:
		return !v.part
	case header.Other:
		if f.Is("Proxy-Authentication-Info") || f.Is("Set-Cookie2") {
			return false
		}
	}
	return !f.ID.HopByHop() && !v.rules.names(f)
}

// leave returns the fields that are for the first client only, as text of its
// exchange.
func (h *hit) leave(f *fetch, v *verdict) (extra []header.Field) {
	text := &h.ex.Text
	for _, x := range f.ex.Response.Header.All() {
		if storedField(&x, v) || x.ID == header.Age || x.ID == header.ContentLength || x.ID == header.ContentRange {
			continue
		}
		extra = append(extra, header.Field{ID: x.ID, Name: text.Join(x.Name), Value: text.Join(x.Value)})
	}
	return extra
}
