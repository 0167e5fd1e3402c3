package forwardauth

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// question makes the subrequest for ex: the fields of the client, and the URL
// that it requests. The fields are views of ex.
func (r *room) question(e *exchange.Subrequest, ex *exchange.Exchange) {
	e.Start("GET", "", r.query, r.timeout)
	e.WhileWanted(ex.Front.Gone)
	list := &e.Request.Header
	for _, f := range ex.Request.Header.All() {
		if !aboutTheBody(f.ID) && !f.ID.HopByHop() {
			list.AddKnown(f.ID, f.Name, f.Value)
		}
	}
	rq := &ex.Request
	method, host := rq.Method, rq.Host
	target := e.Text.Join(rq.Path, rq.Query)
	if r.believe {
		method, host, target = or(ex.Told.Method, method), or(ex.Told.Host, host), or(ex.Told.URI, target)
	}
	list.Add(header.XForwardedMethod, method)
	list.Add(header.XForwardedProto, rq.Scheme)
	list.Add(header.XForwardedHost, host)
	list.Add(header.XForwardedUri, target)
	list.Add(header.XForwardedFor, e.Text.End(ex.ClientIP.AppendTo(e.Text.Buffer())))
	list.Add(header.XOriginalURL, e.Text.Join(rq.Scheme, "://", host, target))
	list.Add(header.XOriginalMethod, method)
	list.Add(header.CDNLoop, asks)
}

// aboutTheBody reports whether a field is about the body of the request, which is
// not sent, or a condition or range: a 304 or a 206 would not answer the
// subrequest.
func aboutTheBody(id header.ID) bool {
	switch id {
	case header.ContentLength, header.ContentEncoding, header.ContentRange, header.Expect, header.Host,
		header.IfMatch, header.IfNoneMatch, header.IfModifiedSince, header.IfUnmodifiedSince, header.IfRange, header.Range:
		return true
	}
	return false
}

// or returns the first value if it is set, otherwise the second.
func or(told, known string) string {
	if told != "" {
		return told
	}
	return known
}
