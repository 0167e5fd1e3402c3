package cache

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// unchanged makes the response a 304 if the client has it already (RFC 9111, section
// 4.3.2; RFC 9110, section 13.2.2).
func (h *hit) unchanged(e *entry, rs *exchange.Response) {
	rq := &h.ex.Request.Header
	if e.status != statusOK {
		return
	}
	switch {
	case rq.Has(header.IfNoneMatch):
		if !rq.ListsTag(header.IfNoneMatch, e.etag, false) {
			return
		}
	case rq.Has(header.IfModifiedSince):
		since, ok := parseDate(rq.Get(header.IfModifiedSince))
		last := e.modified
		if last == noDate {
			last = e.date
		}
		if !ok || last > since {
			return
		}
	default:
		return
	}
	rs.Status, rs.Length = statusNotModified, -1
}

const (
	statusOK      = 200
	statusPartial = 206
)

// notModifiedField says which fields a 304 has (RFC 9110, section 15.4.5).
func notModifiedField(id header.ID) bool {
	switch id {
	case header.CacheControl, header.CDNCacheControl, header.ContentLocation, header.Date, header.ETag, header.Expires,
		header.Vary, header.CacheStatus, header.StrictTransportSecurity:
		return true
	}
	return false
}

func notModifiedFieldOrDate(id header.ID) bool {
	return id == header.LastModified || notModifiedField(id)
}

// opaque returns a tag without the mark of a weak one.
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }
