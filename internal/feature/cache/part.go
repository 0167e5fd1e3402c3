package cache

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/header"
)

// part says which bytes of a resource an entry has; a total of 0 stands for all.
type part struct{ first, last, total int64 }

// has reports whether a request asks for nothing but bytes of the part.
func (p part) has(ex *exchange.Exchange) bool {
	rq := &ex.Request
	if rq.Method != "GET" || !rq.Header.Has(header.Range) || rq.Header.Has(header.IfRange) {
		return false
	}
	first, last, ok, valid := parseRange(rq.Header.Get(header.Range), p.total)
	return ok && valid && first >= p.first && last <= p.last
}

// parseContentRange reads "bytes 0-9/100" (RFC 9110, section 14.4). It returns
// false for a total that is not known.
func parseContentRange(s string) (p part, ok bool) {
	unit, rest, _ := strings.Cut(s, " ")
	span, total, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(span, "-")
	var okFirst, okLast, okTotal bool
	p.first, okFirst = position(from)
	p.last, okLast = position(to)
	p.total, okTotal = position(total)
	ok = header.EqualFold(unit, "bytes") && okFirst && okLast && okTotal && p.first <= p.last && p.last < p.total
	return p, ok
}

// wantsPart reports whether a request asks for one part in a form that can be
// stored.
func wantsPart(rq *exchange.Request) bool {
	if rq.Method != "GET" || !rq.Header.Has(header.Range) || rq.Header.Has(header.IfRange) || rq.Header.Count(header.Range) > 1 {
		return false
	}
	_, _, _, valid := parseRange(rq.Header.Get(header.Range), 1<<62)
	return valid
}

// fetchPart asks for the part that a client wants of something that is not stored,
// since the whole might be far too large, and stores it (RFC 9111, section 3.3).
// A server that sends the whole gives more.
func (c *Cache) fetchPart(h *hit) *exchange.Answer {
	f := c.newFetch(h.ex, nil)
	f.ex.Request.Header.Add(header.Range, h.ex.Request.Header.Get(header.Range))
	began := c.store.now()
	if answer := f.ask(c.inner, nil); answer != nil {
		f.close()
		return c.failed(h, nil, nil, answer)
	}
	rs := &f.ex.Response
	var p part
	why := ""
	if rs.Status == statusPartial {
		var ok bool
		if p, ok = parseContentRange(rs.Header.Get(header.ContentRange)); !ok || rs.Length != p.last-p.first+1 || !p.has(h.ex) {
			why = "range"
		}
	}
	var e *entry
	if why == "" {
		e, why = c.keep(h, f, began, p)
	}
	if e == nil {
		c.hand(h, nil, f, why)
		return nil
	}
	e.body.begin()
	h.serveWith(e, h.extra)
	return nil
}

// cutPart makes the response the bytes that a client wants of an entry that has a
// part.
func (h *hit) cutPart(e *entry, rs *exchange.Response) {
	first, last, _, _ := parseRange(h.ex.Request.Header.Get(header.Range), e.part.total)
	h.addContentRange(rs, first, last, e.part.total)
	h.seek(first-e.part.first, last+1-e.part.first)
	rs.Length = last + 1 - first
}
