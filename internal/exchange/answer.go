package exchange

import (
	"strconv"
	"strings"

	"headgate/internal/proto/header"
)

// Answer is a response that we make ourselves. An Answer that a room returns
// often is made when the plan is compiled and shared: it is never changed.
type Answer struct {
	// Reason gives the status, the text and the word in the log.
	Reason Reason
	// Status replaces the reason's status if it is not 0. Only fixed responses,
	// redirects and relayed answers have one.
	Status int
	// Fields are added to the response.
	Fields []header.Field
	// RetryAfter is sent as Retry-After, in seconds, if it is not 0.
	RetryAfter int
	// Body, if it is not nil, is sent as it is and ContentType names its type;
	// otherwise a body is made from the reason in a form that the client
	// accepts.
	Body        []byte
	ContentType string
	// Cause goes to the log, in one line. A client never sees it.
	Cause string
}

// internalAnswer is what a client gets when an invariant broke.
var internalAnswer = &Answer{Reason: Internal}

// Fail returns the answer for a reason with the cause for the log.
func Fail(reason Reason, cause string) *Answer { return &Answer{Reason: reason, Cause: cause} }

// apply makes the answer the response of ex.
func (a *Answer) apply(ex *Exchange) {
	rs := &ex.Response
	if rs.Body != nil {
		rs.Body.Close()
	}
	rs.Reset()
	rs.Ours = true
	rs.Status = a.Status
	if rs.Status == 0 {
		rs.Status = a.Reason.Status()
	}
	ex.Reason, ex.Cause = a.Reason, a.Cause
	for i := range a.Fields {
		f := &a.Fields[i]
		rs.Header.AddKnown(f.ID, f.Name, f.Value)
	}
	if a.RetryAfter > 0 {
		b := strconv.AppendInt(ex.Text.Buffer(), int64(a.RetryAfter), 10)
		rs.Header.Add(header.RetryAfter, ex.Text.End(b))
	}
	if a.Body != nil {
		if a.ContentType != "" {
			rs.Header.Add(header.ContentType, a.ContentType)
		}
		rs.Text, rs.Length = a.Body, int64(len(a.Body))
		return
	}
	switch {
	case a.Reason.Hint() == "":
	case a.Reason == UpstreamCanceled && ex.Request.GRPC():
		cancelCall(ex)
	default:
		explain(ex, a.Reason)
	}
}

// cancelCall makes the response of a gRPC call that its server has canceled: the
// status CANCELLED in the head and nothing behind it (Trailers-Only in the gRPC
// protocol over HTTP/2). A 502 would become UNAVAILABLE, for which clients call again.
func cancelCall(ex *Exchange) {
	rs := &ex.Response
	rs.Status = 200
	rs.Header.Add(header.ContentType, ex.Text.Join(ex.Request.Header.Get(header.ContentType)))
	rs.Header.Add(header.ProxyStatus, proxyStatus(ex, ex.Reason))
	rs.Header.AddKnown(header.Other, "Grpc-Status", "1")
	rs.Header.AddKnown(header.Other, "Grpc-Message", "the server canceled the call")
}

// explain writes the body of an answer in the format that the client accepts: HTML for
// browsers, problem+json (RFC 9457) for programs that accept JSON, plain text for all
// others. It never contains a server's address.
func explain(ex *Exchange, reason Reason) {
	rs := &ex.Response
	rs.Header.Add(header.CacheControl, "no-store")
	rs.Header.Add(header.ProxyStatus, proxyStatus(ex, reason))
	b := ex.Text.Buffer()
	var kind string
	switch preferred(ex.Request.Header.Get(header.Accept)) {
	case asHTML:
		kind = "text/html; charset=utf-8"
		b = appendHTML(b, rs.Status, reason, ex.ID())
	case asJSON:
		kind = "application/problem+json"
		b = appendProblem(b, rs.Status, reason, ex.ID())
	default:
		kind = "text/plain; charset=utf-8"
		b = appendPlain(b, rs.Status, reason, ex.ID())
	}
	text := ex.Text.End(b)
	rs.Header.Add(header.ContentType, kind)
	rs.Header.Add(header.XRequestID, ex.ID())
	rs.Text, rs.Length, rs.Usual = bytesOf(text), int64(len(text)), true
}

// PrefersJSON reports whether the client is a program that wants JSON rather than
// a page.
func (rq *Request) PrefersJSON() bool {
	return preferred(rq.Header.Get(header.Accept)) == asJSON
}

// proxyStatus is the value of Proxy-Status: the error type of RFC 9209 where
// the RFC has one, and our own word as its details.
func proxyStatus(ex *Exchange, reason Reason) string {
	b := append(ex.Text.Buffer(), "headgate"...)
	if e := reason.ProxyError(); e != "" {
		b = append(b, "; error="...)
		b = append(b, e...)
	}
	b = append(b, `; details="`...)
	b = append(b, reason.String()...)
	b = append(b, '"')
	return ex.Text.End(b)
}

type form uint8

const (
	asText form = iota
	asHTML
	asJSON
)

// preferred picks the form of an answer from an Accept field. It looks for the
// media types that browsers and programs name; weights only exclude: a type
// with q=0 is not acceptable (RFC 9110, section 12.5.1).
func preferred(accept string) form {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, _ := strings.Cut(part, ";")
		if refused(params) {
			continue
		}
		switch kind = strings.TrimSpace(kind); {
		case header.EqualFold(kind, "text/html"), header.EqualFold(kind, "application/xhtml+xml"):
			return asHTML
		case header.EqualFold(kind, "application/json"), header.EqualFold(kind, "application/problem+json"):
			return asJSON
		case header.EqualFold(kind, "text/plain"):
			return asText
		}
	}
	return asText
}

// refused reports whether parameters of a media range say q=0.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if header.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			return err == nil && q == 0
		}
	}
	return false
}

func appendPlain(b []byte, status int, reason Reason, id string) []byte {
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, reason.Title()...)
	b = append(b, "\n\n"...)
	b = append(b, reason.Hint()...)
	b = append(b, "\n\nReason: "...)
	b = append(b, reason.String()...)
	b = append(b, "\nRequest id: "...)
	b = append(b, id...)
	return append(b, '\n')
}

func appendProblem(b []byte, status int, reason Reason, id string) []byte {
	b = append(b, `{"type":"about:blank","title":"`...)
	b = append(b, reason.Title()...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"detail":"`...)
	b = append(b, reason.Hint()...)
	b = append(b, `","code":"`...)
	b = append(b, reason.String()...)
	b = append(b, `","request_id":"`...)
	b = append(b, id...)
	return append(b, "\"}\n"...)
}

func appendHTML(b []byte, status int, reason Reason, id string) []byte {
	b = append(b, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>`...)
	b = append(b, reason.Title()...)
	b = append(b, `</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;color:#1d2733;background:#fff}h1{font-size:1.6rem;margin:0 0 .5rem}small{color:#5b6875}@media(prefers-color-scheme:dark){body{color:#e6ebf0;background:#12171d}small{color:#98a5b3}}</style></head><body><h1>`...)
	b = append(b, reason.Title()...)
	b = append(b, "</h1><p>"...)
	b = append(b, reason.Hint()...)
	b = append(b, "</p><p><small>"...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, " · "...)
	b = append(b, reason.String()...)
	b = append(b, " · "...)
	b = append(b, id...)
	return append(b, "</small></p></body></html>\n"...)
}
