package cache

import (
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// part is the range of bytes of a resource that an entry has; a total of 0 means
// all.
type part struct{ first, last, total int64 }

// has reports whether a request needs only bytes of the part.
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
	p.first, okFirst = header.ParsePosition(from)
	p.last, okLast = header.ParsePosition(to)
	p.total, okTotal = header.ParsePosition(total)
	ok = header.EqualFold(unit, "bytes") && okFirst && okLast && okTotal && p.first <= p.last && p.last < p.total
	return p, ok
}

// wantsPart reports whether a request is for one part in a form that can be
// stored.
func wantsPart(rq *exchange.Request) bool {
	if rq.Method != "GET" || !rq.Header.Has(header.Range) || rq.Header.Has(header.IfRange) || rq.Header.Count(header.Range) > 1 {
		return false
	}
	_, _, _, valid := parseRange(rq.Header.Get(header.Range), 1<<62)
	return valid
}

// fetchPart requests the part that a client needs of something that is not stored,
// since the whole might be far too large, and stores it (RFC 9111, section 3.3). A
// server may send the whole instead.
func (c *Cache) fetchPart(h *hit) *exchange.Answer {
	f := c.newFetch(h.ex, nil)
	f.ex.Request.Header.Add(header.Range, h.ex.Request.Header.Get(header.Range))
	began := c.store.now()
	if answer := f.send(c.inner, nil); answer != nil {
		f.close()
		return c.failed(h, nil, nil, answer)
	}
	rs := &f.ex.Response
	if rs.Status == statusNotModified {
		f.close()
		return c.failed(h, nil, nil, notAsked)
	}
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
	h.serveBegun(e)
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

// partial makes the response a part if the client wants one (RFC 9110, section
// 14.2). Several parts at once are answered with the whole, as the RFC allows.
func (h *hit) partial(e *entry, rs *exchange.Response) {
	rq := &h.ex.Request
	total := h.end
	if e.status != statusOK || total < 0 || !rq.Header.Has(header.Range) || rq.Method != "GET" || !h.ifRange(e) {
		return
	}
	first, last, ok, valid := parseRange(rq.Header.Get(header.Range), total)
	if !valid {
		return
	}
	if !ok {
		text := &h.ex.Text
		b := append(text.Buffer(), "bytes */"...)
		b = strconv.AppendInt(b, total, 10)
		rs.Status, rs.Length, h.end = http1.StatusRangeNotSatisfiable, 0, 0
		rs.Header.Add(header.ContentRange, text.End(b))
		return
	}
	h.addContentRange(rs, first, last, total)
	h.seek(first, last+1)
	rs.Status, rs.Length = statusPartial, last+1-first
}

// addContentRange sets which bytes of how many a response has.
func (h *hit) addContentRange(rs *exchange.Response, first, last, total int64) {
	text := &h.ex.Text
	b := append(text.Buffer(), "bytes "...)
	b = append(strconv.AppendInt(b, first, 10), '-')
	b = append(strconv.AppendInt(b, last, 10), '/')
	rs.Header.Add(header.ContentRange, text.End(strconv.AppendInt(b, total, 10)))
}

// seek moves to the start of a part.
func (h *hit) seek(at, end int64) {
	if h.body.whole.Load() {
		h.at, h.end = at, end
		return
	}
	h.body.mu.Lock()
	h.at, h.end = at, end
	h.body.mu.Unlock()
}

// ifRange reports whether a part of this entry is what the client means: it has
// the same strong tag, or the very date (RFC 9110, section 13.1.5).
func (h *hit) ifRange(e *entry) bool {
	rq := &h.ex.Request.Header
	if !rq.Has(header.IfRange) {
		return true
	}
	value := header.TrimOWS(rq.Get(header.IfRange))
	if value == "" {
		return false
	}
	if value[0] == '"' {
		return value == e.etag
	}
	date, ok := parseDate(value)
	// A date is strong if it was the last one for a while before the answer.
	return ok && date == e.modified && e.date-e.modified >= 60
}

// parseRange reads a single range of bytes. valid is false for what is to be
// ignored: other units, several ranges, mistakes. ok is false for a range that
// lies outside.
func parseRange(s string, total int64) (first, last int64, ok, valid bool) {
	set, found := header.CutRanges(s)
	if !found {
		return 0, 0, false, false
	}
	return header.ParseRange(set, total)
}
