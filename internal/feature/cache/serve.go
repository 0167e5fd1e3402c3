package cache

import (
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// serve answers with an entry that is open.
func (h *hit) serve(e *entry) *exchange.Answer {
	h.serveWith(e, nil)
	return nil
}

// serveWith is serve with further fields.
func (h *hit) serveWith(e *entry, extra []header.Field) {
	rs := &h.ex.Response
	rs.Reset()
	rs.Status, rs.Body, rs.Length = e.status, h, h.end
	h.ex.Cache.Server = e.server
	h.unchanged(e, rs)
	switch {
	case e.part.total > 0:
		h.cutPart(e, rs)
	case rs.Status != statusNotModified:
		h.partial(e, rs)
	}
	var pass func(header.ID) bool
	switch {
	case rs.Status == statusNotModified:
		pass = notModifiedField
		if e.etag == "" {
			pass = notModifiedFieldOrDate
		}
	case rs.Status == http1.StatusRangeNotSatisfiable:
		pass = notModifiedField
	}
	e.fields(&rs.Header, pass)
	for i := range extra {
		rs.Header.AddKnown(extra[i].ID, extra[i].Name, extra[i].Value)
	}
	if rs.Status == statusNotModified || h.ex.Request.Method == "HEAD" {
		h.seek(0, 0)
	} else {
		h.text(rs)
	}
	h.addFields(e, rs)
}

// text hands a short body over as it lies in memory.
func (h *hit) text(rs *exchange.Response) {
	if rs.Status == http1.StatusRangeNotSatisfiable {
		return
	}
	mem, ok := h.body.one()
	if !ok {
		return
	}
	end := int64(len(mem))
	if h.end >= 0 {
		end = min(end, h.end)
	}
	if h.end = end; h.at < end {
		rs.Text = mem[h.at:end]
	}
	rs.Length = end - h.at
}

// addFields adds Age and Cache-Status, and notes the use.
func (h *hit) addFields(e *entry, rs *exchange.Response) {
	text := &h.ex.Text
	if !h.stored || e.age > 0 {
		age := e.ageAt(h.store.nowFor(h)) / second
		rs.Header.Add(header.Age, text.End(strconv.AppendInt(text.Buffer(), min(age, longest), 10)))
	}
	b := text.Buffer()
	if h.forwarded || h.collapsed {
		b = h.appendForward(b)
		if h.collapsed {
			b = append(b, "; collapsed"...)
		}
	} else {
		b = append(b, "headgate; hit"...)
	}
	if left := (e.life - e.ageAt(h.now)) / second; !h.stored {
		b = append(b, "; ttl="...)
		b = strconv.AppendInt(b, left, 10)
	}
	rs.Header.Add(header.CacheStatus, text.End(b))
	h.ex.Cache.Use = h.word()
}

func (h *hit) word() exchange.CacheUse {
	switch {
	case h.revalidated:
		return exchange.CacheRevalidated
	case h.stored:
		return exchange.CacheMiss
	case h.use == refreshing:
		return exchange.CacheStale
	case h.collapsed:
		return exchange.CacheCollapsed
	}
	return exchange.CacheHit
}

// nowFor returns the moment of a request; after a fetch it is read anew.
func (s *store) nowFor(h *hit) int64 {
	if h.forwarded {
		h.now = s.now()
	}
	return h.now
}

// The values of Cache-Status for requests that pass by (RFC 9211).
const (
	statusMethod  = "headgate; fwd=method"
	statusBypass  = "headgate; fwd=bypass"
	statusRequest = "headgate; fwd=request"
)

// appendForward appends why a request went on to the servers.
func (h *hit) appendForward(b []byte) []byte {
	b = append(b, "headgate; fwd="...)
	use, near := h.use, h.near
	if h.collapsed {
		use, near = h.wanted, h.wantedNear
	}
	switch {
	case use == none && near:
		b = append(b, "vary-miss"...)
	case use == none:
		b = append(b, "uri-miss"...)
	case h.cc.has&(noCache|maxAge|minFresh) != 0:
		b = append(b, "request"...)
	default:
		b = append(b, "stale"...)
	}
	if h.revalidated {
		b = append(b, "; fwd-status=304"...)
	} else if h.forwardStatus > 0 {
		b = strconv.AppendInt(append(b, "; fwd-status="...), int64(h.forwardStatus), 10)
	}
	if h.stored {
		b = append(b, "; stored"...)
	}
	return b
}
