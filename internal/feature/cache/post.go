package cache

import (
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// post is the answer to a POST on its way to the client, which is stored for GET when
// it has come whole.
type post struct {
	exchange.Body
	cache  *Cache
	hit    *hit
	entry  *entry // held; nil when it is not to be stored any more
	length int64
	held   []byte
	begun  uint64 // how many sweeps there were
}

// maxPost is the largest answer to a POST that is stored, in bytes: it is held beside the
// cache while it comes.
const maxPost = 256 << 10

// post passes a POST on. Its answer is stored for GET where the server says that a GET
// of the same address gets it: by a Content-Location that is this address, and a life
// of its own (RFC 9110, section 9.3.3; RFC 9111, section 4).
func (c *Cache) post(ex *exchange.Exchange) *exchange.Answer {
	began, begun := c.store.now(), c.store.sweeps.Load()
	answer := c.pass(ex, statusMethod)
	rs := &ex.Response
	if answer != nil || rs.Status != statusOK || rs.Tunnel != nil || !c.locatesItself(ex) {
		return answer
	}
	h := c.newHit(ex)
	now := c.store.now()
	v := c.storable(ex, rs.Status, &rs.Header, c.store.clock(), time.Duration(now-began), part{})
	if !v.stored || !v.explicit || v.life == 0 || v.rules.has&noCache != 0 || h.cc.has&noStore != 0 || rs.Length > c.maxEntry {
		return nil
	}
	e := h.newEntry(&v, rs, ex.Server, now)
	if e == nil {
		return nil
	}
	e.received = c.store.clock().Unix()
	e.body = newBody(c.store, e.hash, rs.Length, c.maxEntry)
	h.post = &post{Body: rs.Body, cache: c, hit: h, entry: e, length: rs.Length, begun: begun}
	if rs.Text != nil {
		h.post.Body, rs.Text = &owned{textBody{rs.Text}, rs.Body}, nil
	}
	rs.Body = h.post
	return nil
}

// locatesItself reports whether a response names the address of its request in
// Content-Location, and nothing pretends that this is another one.
func (c *Cache) locatesItself(ex *exchange.Exchange) bool {
	rq, rs := &ex.Request, &ex.Response
	path, query, ok := sameHost(rs.Header.Get(header.ContentLocation), rq)
	return ok && path == rq.Path && query == rq.Query && rs.Header.Count(header.ContentLocation) == 1 &&
		(rs.Body != nil || rs.Text != nil) && !c.ignored.touches(rq.Query) && !overridden(&rq.Header)
}

// Read reads on, and keeps what was read.
func (p *post) Read(b []byte) (int, error) {
	n, err := p.Body.Read(b)
	if p.entry == nil {
		return n, err
	}
	if p.held = append(p.held, b[:n]...); int64(len(p.held)) > min(p.cache.maxEntry, maxPost) || err != nil && err != io.EOF {
		p.drop()
	}
	if err == io.EOF {
		p.store()
	}
	return n, err
}

// store makes what was kept an entry.
func (p *post) store() {
	defer p.drop()
	e, s := p.entry, p.cache.store
	if e == nil || p.length >= 0 && p.length != int64(len(p.held)) || s.sweptSince(e.hash, p.begun) || p.hit.ex.Response.Trailer.Len() > 0 {
		return
	}
	b := s.wholeBody(e.hash, p.cache.maxEntry, int64(len(p.held)), func(mem []byte, at int64) { copy(mem, p.held[at:]) })
	if b == nil {
		return
	}
	e.body.release()
	e.body = b
	p.cache.publish(p.hit, nil, e, p.begun)
}

// drop keeps nothing any more.
func (p *post) drop() {
	if p.entry != nil {
		p.entry.release()
		p.entry, p.held = nil, nil
	}
}

// Close discards an incomplete body.
func (p *post) Close() error {
	p.drop()
	return p.Body.Close()
}

// owned is a text with what holds its memory.
type owned struct {
	textBody
	holder exchange.Body
}

// Close lets go of the memory.
func (o *owned) Close() error {
	if o.holder == nil {
		return nil
	}
	return o.holder.Close()
}
