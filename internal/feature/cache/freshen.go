package cache

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// freshen makes an entry of a stored one and the head that says it is still good
// (RFC 9111, section 4.3.4). It returns nil if the 304 is about something else.
func (c *Cache) freshen(h *hit, e *entry, news *header.List, began int64) *entry {
	if tag := news.Get(header.ETag); tag != "" && e.etag != "" && opaque(tag) != opaque(e.etag) {
		return nil
	}
	var whole exchange.Response
	whole.Status = e.status
	e.fields(&whole.Header, func(id header.ID) bool { return true })
	update(&whole.Header, news)
	if e.variant.encoding && !variesByCoding(&whole.Header) {
		// Who compressed the body said so, and did not see the 304.
		whole.Header.Add(header.Vary, "Accept-Encoding")
	}
	if !news.Has(header.Date) {
		whole.Header.Set(header.Date, c.store.date())
	}
	wall, now := c.store.clock(), c.store.now()
	v := c.storable(h.ex, e.status, &whole.Header, wall, time.Duration(now-began), part{})
	if !v.stored {
		// It may be used this once.
		v.life, v.rules.has = 0, v.rules.has|noCache
	}
	fresher := h.newEntry(&v, &whole, e.server, now)
	if fresher == nil {
		return nil
	}
	fresher.received = wall.Unix()
	fresher.body = e.body
	e.body.refs.Add(1)
	return fresher
}

// update replaces fields by those of a newer response (RFC 9111, section 3.2).
// What reports the body stays, and a tag that differs in its strength only: who
// compressed the body has weakened it.
func update(old, news *header.List) {
	for i := range news.All() {
		f := &news.All()[i]
		switch f.ID {
		case header.ContentLength, header.ContentEncoding, header.ContentRange, header.CacheStatus:
			continue
		case header.ETag:
			if old.Has(header.ETag) && opaque(old.Get(header.ETag)) == opaque(f.Value) {
				continue
			}
		}
		first := true
		for j := range i {
			if g := &news.All()[j]; g.ID == f.ID && (f.ID != header.Other || g.Is(f.Name)) {
				first = false
			}
		}
		if first {
			if f.ID == header.Other {
				old.DelField(f.Name)
			} else {
				old.Del(f.ID)
			}
		}
		old.AddKnown(f.ID, f.Name, f.Value)
	}
	old.Del(header.Age)
	if age := news.Get(header.Age); age != "" {
		old.Add(header.Age, age)
	}
}

// leadHead forwards a HEAD request, and refreshes stored entries of the same
// resource from its response, or removes them if it is about a newer version
// (RFC 9111, section 4.3.5).
func (c *Cache) leadHead(h *hit, e *entry) *exchange.Answer {
	began, begun := c.store.now(), c.store.sweeps.Load()
	if answer := c.inner.Respond(h.ex); answer != nil {
		return c.failed(h, e, nil, answer)
	}
	rs := &h.ex.Response
	if e == nil || rs.Status != statusOK && rs.Status != e.status || c.ignored.touches(h.ex.Request.Query) {
		rs.Header.Add(header.CacheStatus, h.ex.Text.End(h.appendForward(h.ex.Text.Buffer())))
		return nil
	}
	if !sameBody(e, rs) {
		c.store.unlink(e)
	} else if fresher := c.freshen(h, e, &rs.Header, began); fresher != nil {
		c.publish(h, e, fresher, begun)
		fresher.release()
	}
	rs.Header.Add(header.CacheStatus, h.ex.Text.End(h.appendForward(h.ex.Text.Buffer())))
	return nil
}

// sameBody reports whether the answer to a HEAD is about the body that is stored.
func sameBody(e *entry, rs *exchange.Response) bool {
	total := e.body.total()
	switch {
	case rs.Length >= 0 && total >= 0 && rs.Length != total && !rs.Header.Has(header.ContentEncoding):
		return false
	case rs.Status != e.status:
		return false
	case e.etag != "" && rs.Header.Has(header.ETag):
		return opaque(rs.Header.Get(header.ETag)) == opaque(e.etag)
	}
	return rs.Header.Get(header.LastModified) == e.lastMod
}
